"""What public recordings of real cards say, against what an audit of a simulated device says of the same programs.

`recordings.csv` lists traces of torch.profiler by repository, commit, path and digest; the traces themselves stay where
they are. `digests.json` is what each says, as `devlint report` reads it, `operators.csv` what the operators did that
occur in them. `programs` are our own, and do with a device what the recorded scripts did.
"""
