"""DVL4: waiting for the device, and giving its memory back."""
