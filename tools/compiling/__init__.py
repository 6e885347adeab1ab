"""Compiling the interpreter with mypyc: the same devlint, 1.6 times as fast on code that it has not seen.

The sources are what people read, and what runs where nothing was compiled.  mypyc turns classes into C structures and
calls into C calls, if it recognises them; so a copy of the sources is rewritten first (:mod:`.rewriting`), and then
compiled (:mod:`.build`).  A wheel has both: Python prefers the compiled module where there is one.

``python -m tools.compiling FOLDER`` leaves a compiled devlint in a folder.  ``pip`` makes a compiled wheel of a
checkout where ``HATCH_BUILD_HOOK_ENABLE_CUSTOM=1`` asks for it (:mod:`.hook`).
"""
