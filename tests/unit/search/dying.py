"""What a script begins with that is to be killed at the n-th of some calls: n is its second argument."""

DYING = """
import os, signal, sys

left = int(sys.argv[2])

def counted(owner, name):
    call = getattr(owner, name)
    def dying(*given, **named):
        global left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return call(*given, **named)
    setattr(owner, name, dying)
"""
