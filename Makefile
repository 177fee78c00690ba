# make demo: the whole story on this machine. make test: everything that is checked. make bench: how fast, as ratios.
# make docs: the reference of all products. make cluster: two nodes, of which one is killed, and a database that moves.
# make edge: a gateway without a server, which asks one. make service: a service without a gateway, which does as well.
.PHONY: demo first-call first-resource first-device cluster edge service test traits consumer races soak bench check docs setup setup-tests build
.DEFAULT_GOAL := demo

# Everything that we build has the backends that need C headers (package traits, off for those who use the package), and
# no target imports what it does not name. Debug information costs a tenth of the time, and only a debugger reads it:
# 'make build DEBUGGER=1' makes it. (SwiftPM looks for tests in the index, so that stays.)
export ASSENT_BUILD_FLAGS := --enable-all-traits --explicit-target-dependency-import-check error \
	$(if $(DEBUGGER),,-debug-info-format none) -Xcc -O2
# What tests spend their time in is optimised, also in a debug build; see the end of Package.swift.
export ASSENT_OPTIMIZED_CORE := 1

# SwiftPM passes the traits to the compiler in the order of a set, another one each time, and then compiles it all again.
swift := SWIFT_DETERMINISTIC_HASHING=1 swift

setup:
	@Scripts/setup.sh

setup-tests:
	@Scripts/setup.sh --tests

# make build TARGET=AssentEngine: only what you changed.
build: setup
	@$(swift) build $(ASSENT_BUILD_FLAGS) $(if $(TARGET),--target $(TARGET),--build-tests)

check:
	@Scripts/check.sh

# 'make test RACES=1': with 'make races' behind the tests.
test: setup-tests check build
	@ASSENT_WITH_RACES=$(RACES) Scripts/run_all.sh

# What depends on package traits, compiled without them and with each alone; after 'make build'.
traits:
	@Scripts/check_traits.py

# An app that depends on this package by its path, as README.md says: without traits, with each alone and with all of
# them, for debugging and for release.
consumer:
	@Scripts/check_consumer.sh
	@Scripts/check_consumer.sh -c release
	@Scripts/check_consumer.sh --all-traits
	@Scripts/check_consumer.sh --all-traits -c release
	@Scripts/check_consumer.sh --each-trait
	@Scripts/check_consumer.sh --each-trait -c release

# The tests of races under the thread sanitizer: a build of its own, and about ten minutes at first.
races: setup-tests
	@Scripts/check_races.sh

# What takes too long for every run: thousands of requests over two processes, a database that is away for minutes,
# programs that are killed at their write points, a hundred thousand unlocks.
soak: build
	@ASSENT_SOAK=1 ASSENT_TEST_SILENCE=3600 Scripts/run_tests.sh --filter \
		'NodeProcessTests|KeyRaceProcessTests|RegistrationRaceProcessTests|LoginRaceProcessTests|LoginRaceTests|WebLinkRaceProcessTests|SealedRaceProcessTests|PayloadExplorationTests|MutatedFrameTests|MutatedContentTests|LoginExplorationTests|SigningRenewalNodeTests|SigningKillTests|DeviceKillTests|LoginKillTests|RegisterKillTests|RegisterRaceTests|SigningRelayTests|SigningDelayTests|SigningRatchetTests|AssentSigningProtocolTests|TokenLifecycleTests.ProcessTests|GatewayRaceTests|ConnectionStateTests|PoolStateTests|FailoverModelTests'

# 'swift build' takes one product. The second finds all but the bank's own files built; the third stands for a debugger.
demo: setup
	@$(swift) build $(ASSENT_BUILD_FLAGS) --product assent
	@$(swift) build $(ASSENT_BUILD_FLAGS) --product AssentExampleBank
	@$(swift) build $(ASSENT_BUILD_FLAGS) --product CTracer
	@"$$($(swift) build $(ASSENT_BUILD_FLAGS) --show-bin-path)/assent" demo

# The program in Snippets/FirstCall.swift. 'assent demo --keep' says with what.
first-call: setup
	@$(swift) run $(ASSENT_BUILD_FLAGS) FirstCall $(WITH)

# The same for Snippets/FirstResource.swift.
first-resource: setup
	@$(swift) run $(ASSENT_BUILD_FLAGS) FirstResource $(WITH)

# The same for Snippets/FirstDevice.swift.
first-device: setup
	@$(swift) run $(ASSENT_BUILD_FLAGS) FirstDevice $(WITH)

cluster: setup-tests
	@$(swift) build $(ASSENT_BUILD_FLAGS) --product assent
	@$(swift) build $(ASSENT_BUILD_FLAGS) --product AssentExampleBank
	@Examples/cluster/run.sh "$$($(swift) build $(ASSENT_BUILD_FLAGS) --show-bin-path)"

edge: setup-tests
	@$(swift) build $(ASSENT_BUILD_FLAGS) --product assent
	@$(swift) build $(ASSENT_BUILD_FLAGS) --product AssentExampleBank
	@Examples/edge/run.sh "$$($(swift) build $(ASSENT_BUILD_FLAGS) --show-bin-path)"

service: setup-tests
	@$(swift) build $(ASSENT_BUILD_FLAGS) --product assent
	@$(swift) build $(ASSENT_BUILD_FLAGS) --product AssentExampleBank
	@$(swift) build $(ASSENT_BUILD_FLAGS) --product AssentExampleService
	@Examples/service/run.sh "$$($(swift) build $(ASSENT_BUILD_FLAGS) --show-bin-path)"

bench: setup-tests
	@$(swift) build -c release $(ASSENT_BUILD_FLAGS) --product AssentBench
	@"$$($(swift) build -c release $(ASSENT_BUILD_FLAGS) --show-bin-path)/AssentBench"

# The DocC pages of the products, in .build/docs; a warning is an error.
docs: setup
	@Scripts/build_docs.sh
