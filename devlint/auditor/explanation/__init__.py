"""Why tensors on different devices met: from an error and its traceback to who was where and what put it there."""
