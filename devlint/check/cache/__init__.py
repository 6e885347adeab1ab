"""The results of earlier runs: what was found in a file holds as long as nothing changes that it hangs on."""
