"""The charts of the page, in the language of Vega-Lite; the page's script gives them data and colours."""

from __future__ import annotations

from typing import Any


def timeline_chart() -> dict[str, Any]:
    """Stacked bars, one stack per step; each datum has ``from``, ``to``, ``what``, ``order``, ``value``."""
    return {
        "width": "container",
        "height": 170,
        "autosize": {"type": "fit-x", "contains": "padding"},
        "data": {"name": "steps", "values": []},
        "params": [
            {
                "name": "zoom",
                "select": {"type": "interval", "encodings": ["x"], "zoom": "wheel![event.shiftKey]"},
                "bind": "scales",
            }
        ],
        "mark": {"type": "bar", "clip": True, "binSpacing": 0, "tooltip": {"content": "data"}},
        "encoding": {
            "x": {
                "field": "from",
                "bin": {"binned": True},
                "type": "quantitative",
                "title": "step",
                "scale": {"zero": False, "nice": False},
                # of few steps Vega has ticks between them, too
                "axis": {
                    "tickMinStep": 1,
                    "labelExpr": "datum.value % 1 ? '' : format(datum.value, ',d')",
                    "grid": False,
                },
            },
            "x2": {"field": "to"},
            "y": {
                "field": "value",
                "type": "quantitative",
                "stack": "zero",
                "title": None,
                "axis": {"labelExpr": "amount(datum.value)", "tickCount": 4, "minExtent": 64},
            },
            "color": {"field": "what", "type": "nominal", "title": None, "legend": {"orient": "top"}},
            "order": {"field": "order", "type": "quantitative"},
        },
    }
