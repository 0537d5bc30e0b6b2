"""Live conversations with the reference nodes, which whoever wants to run them builds himself.

Every test here skips unless an environment variable names a program: ``SOLITON_JUDGE_GO`` the Go
node (``cmd/node`` of wavesplatform/gowaves), ``SOLITON_JUDGE_SCALA`` the jar of the Scala node
(wavesplatform/Waves), or a text file with its class path; ``SOLITON_JUDGE_MATCHER`` such a file for
the Scala matcher (wavesplatform/matcher). They take minutes: blocks come in their own time.
"""
