"""Operations that are more than one computation of the host: copies, waits, whole networks, casts of autocast."""
