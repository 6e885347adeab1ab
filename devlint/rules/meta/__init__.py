"""DVL9: devlint's word on the file itself and on the comments that silence it."""
