# make demo: the whole story on this machine. make test: everything that is checked. make bench: how fast, as ratios.
.PHONY: demo test bench check setup build
.DEFAULT_GOAL := demo

setup:
	@Scripts/setup.sh

build: setup
	@swift build --build-tests --explicit-target-dependency-import-check error

check:
	@Scripts/check.sh

test: setup check build
	@Scripts/check_linkage.sh
	@swift test --skip-build --parallel

demo: setup
	@swift build --product assent
	@swift build --product AssentExampleBank
	@"$$(swift build --show-bin-path)/assent" demo

bench: setup
	@swift build -c release --product AssentBench
	@"$$(swift build -c release --show-bin-path)/AssentBench"
