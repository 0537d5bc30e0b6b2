from soliton.testing.chain import Chain as Chain
from soliton.testing.chain import NotObeying as NotObeying
from soliton.testing.dapps import Dapp as Dapp
from soliton.testing.machines import ChainMachine as ChainMachine
from soliton.testing.refusals import Refusal as Refusal
from soliton.testing.refusals import refused as refused
