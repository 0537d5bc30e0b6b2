"""The compiler of the source language: ``compile_source``, and the error that it raises."""

from soliton.ride.compiler.compile import Compiled, compile_source, compile_value
from soliton.ride.compiler.errors import CompileError

__all__ = ["CompileError", "Compiled", "compile_source", "compile_value"]
