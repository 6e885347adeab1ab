"""From a record to findings and advice: sites found again in the code, and judged by the rules of `devlint check`."""
