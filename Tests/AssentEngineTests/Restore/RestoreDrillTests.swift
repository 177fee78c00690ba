import AssentCore
import AssentJOSE
import AssentSigning
import AssentSigningProtocol
import AssentStore
import AssentTesting
import SigningTesting
import Testing

@testable import AssentEngine

/// Each drill backs up and restores by the commands that `docs/operating.md` has for people.
@Suite("What a restored backup must not bring back")
struct RestoreDrillTests {
    private static let journeys: Set<FencedKind> = [.journeySteps, .oneTimePasswords]
    private static let access: Set<FencedKind> = [
        .sessions, .grants, .consents, .tokenKeys, .codes, .refreshTokens, .bootstrapTokens, .registrationTokens,
        .webLinks,
    ]
    private static let approvals: Set<FencedKind> = [
        .transactions, .signingTransactions, .signingApprovals, .invites, .enrolments, .evaluations, .slots,
    ]
    private static let networks: Set<FencedKind> = [.networks]
    private static let devices: Set<FencedKind> = [.deviceCodes, .nonces]
    /// `lostOutcomes` is about a record, and no second use.
    private static let records: Set<FencedKind> = [.lostOutcomes]

    @Test("Each kind that the register knows is rehearsed here")
    func coverage() {
        let rehearsed = Self.journeys.union(Self.access).union(Self.approvals).union(Self.devices).union(Self.records)
            .union(Self.networks)
        #expect(rehearsed == Set(FencedKind.allCases))
        #expect(Set(TableRegister.tables.flatMap(\.fence).compactMap(\.kind)) == Set(FencedKind.allCases))
    }

    @Test("Steps of journeys and one-time passwords")
    func journeySteps() async throws {
        let operated = try await OperatedDatabase()
        let fixture = try await JourneyFixture(operated: operated)
        let page = try await fixture.start("Password")
        let code = try fixture.code()
        // An app whose clock is half a minute ahead shows it now; every other app shows it half a minute later.
        let early = try fixture.code(stepsAhead: 1)
        @Sendable func sign(in name: String) async throws -> Secret {
            try await fixture.answer(page, [.string(name), .string(JourneyFixture.password)]).token()
        }
        try await RestoreDrill.run(
            [
                RestoreDrill(.journeySteps, "a step") {
                    _ = try await sign(in: "ana")
                } again: {
                    // The same answer would get the stored reply.
                    (try? await sign(in: "ben")) != nil
                },
                RestoreDrill(.oneTimePasswords, "a code") {
                    try #require(try await fixture.oneTimePasswords.verify(code, user: fixture.ana) == .accepted)
                } again: {
                    try await fixture.oneTimePasswords.verify(code, user: fixture.ana) == .accepted
                },
                RestoreDrill(.oneTimePasswords, "a code of the next step") {
                    try #require(try await fixture.oneTimePasswords.verify(early, user: fixture.ana) == .accepted)
                } again: {
                    try await fixture.oneTimePasswords.verify(early, user: fixture.ana) == .accepted
                },
            ], on: fixture.context, covering: Self.journeys)
        operated.passTwoMinutes()
        #expect(try await fixture.oneTimePasswords.verify(try fixture.code(), user: fixture.ana) == .accepted)
    }

    @Test("Sessions, grants, consents, codes, refresh tokens, keys, and the token of the first administrator")
    func access() async throws {
        let fixture = try await ProviderFixture(apps: [ProviderFixture.linking], operated: OperatedDatabase())
        let (initial, link) = (try await fixture.initialToken(), try await fixture.webLink())
        // Nobody is an administrator yet.
        _ = try await fixture.database.run(SQLStatement("UPDATE users SET roles = '' WHERE username = 'root'"))
        let (context, grants) = (fixture.context, fixture.grants)
        let session = try await Sessions(context).begin(
            userID: fixture.user.id, realm: "/alpha", limits: SessionLimits())
        let code = try await fixture.code()
        let (refreshed, revoked) = (try await fixture.tokens(), try await fixture.tokens())
        let consent = try ProviderFixture.parameters([
            "client_id": "back end", "redirect_uri": "https://backend.example/cb?tenant=1", "response_type": "code",
            "code_challenge": ProviderFixture.challenge, "code_challenge_method": "S256",
        ])
        _ = try await AuthorizationEndpoint(grants).answer(consent, session: fixture.session, decision: .allow)
        let signed = try await ServerKeys(context).sign(["sub": "ana"], type: "JWT", for: .idToken)
        let administration = Administration(context)
        let token = try #require(try await administration.bootstrapToken())
        @Sendable func isAccepted(_ body: () async throws -> Void) async -> Bool { (try? await body()) != nil }
        try await RestoreDrill.run(
            [
                RestoreDrill(.sessions, "a session that was signed out") {
                    try #require(try await Sessions(context).end(id: TokenHash.of(session.token)))
                } again: {
                    try await Sessions(context).live(token: session.token) != nil
                },
                RestoreDrill(.codes, "an authorization code") {
                    _ = try await fixture.exchange(code)
                } again: {
                    await isAccepted { _ = try await fixture.exchange(code) }
                },
                RestoreDrill(.refreshTokens, "a refresh token") {
                    _ = try await fixture.refresh(refreshed.refreshToken)
                } again: {
                    await isAccepted { _ = try await fixture.refresh(refreshed.refreshToken) }
                },
                RestoreDrill(.grants, "a grant that was revoked") {
                    try await grants.revoke(
                        try ProviderFixture.parameters([
                            "client_id": "bank-app", "token": revoked.refreshToken?.reveal() ?? "",
                        ]))
                } again: {
                    try await fixture.isLive(revoked)
                },
                RestoreDrill(.consents, "a consent that was withdrawn") {
                    try #require(try await grants.withdrawConsent(to: "back end", by: fixture.session))
                } again: {
                    try await !grants.consents(of: fixture.session).isEmpty
                },
                RestoreDrill(.tokenKeys, "a key that was discarded") {
                    try await ServerKeys(context).rotate(.idToken, discardingOld: true)
                } again: {
                    try await ServerKeys(context).claims(of: signed, type: "JWT", for: .idToken) != nil
                },
                RestoreDrill(.registrationTokens, "an initial access token") {
                    _ = try await fixture.register(AssertionKey(), token: initial)
                } again: {
                    await isAccepted { _ = try await fixture.register(AssertionKey(), token: initial) }
                },
                RestoreDrill(.webLinks, "a link into a browser") {
                    try #require(try await fixture.use(link) != nil)
                } again: {
                    try await fixture.use(link) != nil
                },
                RestoreDrill(.bootstrapTokens, "the bootstrap token") {
                    try await administration.bootstrap(token, session: fixture.session)
                } again: {
                    await isAccepted { try await administration.bootstrap(token, session: fixture.session) }
                },
            ], on: context, covering: Self.access)
        let renewed = try #require(try await administration.bootstrapToken())
        #expect(renewed != token)
    }

    @Test("Transactions, approvals of devices, invites, enrolments, PINs")
    func approvals() async throws {
        let fixture = try await SigningStoreFixture(operated: OperatedDatabase())
        let (base, store, now) = (fixture.base, fixture, fixture.now)
        let spent = try await base.approved()
        let open = try await base.create(try base.binding(session: base.ben))
        let container = try await fixture.active()
        let pending = try await fixture.pending()
        let forPolicy = try await store.documents.create(fixture.transaction(policy: "policy"), limits: SigningLimits())
        _ = try await store.decisions.decide(
            fixture.decision(forPolicy, container), container: container, proof: fixture.proof(container.did), at: now)
        let invite = try await fixture.invited()
        let (started, waiting) = (try await fixture.started(try await fixture.invited()), try await fixture.completed())
        let pin = try await fixture.withSlot()
        _ = try await fixture.unlock(pin)
        try await store.slots.confirm(fixture.confirmed(pin, 1), of: pin)
        let tried = try await fixture.withSlot()
        @Sendable func isTaken(_ policy: String) async throws -> Bool {
            try await !base.database.run(
                SQLStatement(SigningTransactionSQL.take(policyTransaction: policy, req: "req"))
            ).isEmpty
        }
        @Sendable func takeEvaluation() async throws -> Bool {
            let taking = DecisionSQL.take(
                SpentEvaluation(fixture.confirmed(pin, 1)), for: "decision", did: pin.did, at: now)
            do {
                _ = try await base.database.run([SQLStatement(taking, expecting: .exactly(1))])
                return true
            } catch let error as StoreError where error.code == .unexpectedCount {
                return false
            }
        }
        @Sendable func start() async throws -> Bool {
            try await store.enrolments.start(fixture.enrolment(invite), user: fixture.user, isAgain: false, at: now)
        }
        let drills = [
            RestoreDrill(.transactions, "an approved transaction") {
                try #require(try await base.transactions.take(id: spent, binding: try base.binding()).isTaken)
            } again: {
                try await base.transactions.take(id: spent, binding: try base.binding()).isTaken
            },
            RestoreDrill(.transactions, "an open transaction") {
                try await base.approve(open.id, session: base.ben)
            } again: {
                (try? await base.approve(open.id, session: base.ben)) != nil
            },
            RestoreDrill(.signingTransactions, "an open signing transaction") {
                _ = try await store.decisions.decide(
                    fixture.decision(pending, container), container: container, proof: fixture.proof(container.did),
                    at: now)
            } again: {
                try await signingCode {
                    _ = try await store.decisions.decide(
                        fixture.decision(pending, container), container: container,
                        proof: fixture.proof(container.did), at: now)
                } == nil
            },
            RestoreDrill(.signingApprovals, "an approval on a device") {
                try #require(try await isTaken("policy"))
            } again: {
                try await isTaken("policy")
            },
            RestoreDrill(.invites, "an invite") {
                try #require(try await start())
                _ = try await store.invites.void(invite, at: now)
            } again: {
                try await start()
            },
            RestoreDrill(.invites, "digits") {
                _ = try await store.enrolments.confirm(
                    waiting, echoHash: "echo", activation: fixture.activation(), at: now)
                try #require(
                    try await store.enrolments.acceptDigits(waiting, activation: fixture.activation(), at: now))
            } again: {
                try await store.enrolments.acceptDigits(waiting, activation: fixture.activation(), at: now)
            },
            RestoreDrill(.enrolments, "an enrolment") {
                _ = try await fixture.commit(started)
            } again: {
                try await signingCode { _ = try await fixture.commit(started, "another") } == nil
            },
            RestoreDrill(.evaluations, "a PIN that was typed") {
                try #require(try await takeEvaluation())
            } again: {
                try await takeEvaluation()
            },
            RestoreDrill(.slots, "tries of a PIN") {
                for _ in 1...5 { _ = try await fixture.unlock(tried) }
            } again: {
                try await fixture.refusal(tried) == nil
            },
        ]
        try await RestoreDrill.run(drills, on: base.context, covering: Self.approvals)
        #expect(try await store.documents.find(pending.txn)?.state == .failed)
        #expect(try await store.documents.find(forPolicy.txn)?.state == .approved)
        #expect(try await fixture.state(container) == .active)
        #expect(try await fixture.state(waiting) == .void)
    }

    @Test("One-time codes of devices, and what devices have sent")
    func devices() async throws {
        let operated = try await OperatedDatabase()
        let world = try await SigningWorld(operated: operated) {
            $0.oneTimeKeys = [
                OneTimeKeySettings(label: "timed", kind: .time(period: 30)),
                OneTimeKeySettings(label: "counted", kind: .counter),
            ]
        }
        let sdk = try SDKWorld(world)
        let container = try await sdk.enrolled(sdk.device())
        let codes = (
            timed: try await container.oneTimeCode(label: "timed").code.reveal(),
            counted: try await container.oneTimeCode(label: "counted").code.reveal()
        )
        @Sendable func accepts(_ code: String, _ label: String) async throws -> Bool {
            try await world.provider.codes.verify(code, label: label, user: world.base.ana.user) == .accepted
        }
        let (device, enrolled) = try await world.enrolled()
        let body = try await device.sealed(UpdateBody(name: "phone").encoded(), sender: enrolled.did.text)
        let proof = try await device.proof(enrolled.did, path: "update", body: body)
        @Sendable func update() async throws -> String? {
            try await refusal { _ = try await world.send("update", proof: proof, body: body) }
        }
        try await RestoreDrill.run(
            [
                RestoreDrill(.deviceCodes, "a code by time") {
                    try #require(try await accepts(codes.timed, "timed"))
                } again: {
                    try await accepts(codes.timed, "timed")
                },
                RestoreDrill(.deviceCodes, "a code by counter") {
                    try #require(try await accepts(codes.counted, "counted"))
                } again: {
                    try await accepts(codes.counted, "counted")
                },
                RestoreDrill(.nonces, "a call") {
                    let refused = try await update()
                    try #require(refused == nil)
                } again: {
                    try await update() == nil
                },
            ], on: world.base.context, covering: Self.devices)
        #expect(try await update() == "use_nonce")
        operated.passTwoMinutes()
        #expect(try await accepts(try await container.oneTimeCode(label: "timed").code.reveal(), "timed"))
        #expect(try await device.status(enrolled.did).state == .active)
    }

    @Test("Networks that a lock or another password has forgotten")
    func networks() async throws {
        let fixture = try await JourneyFixture(operated: OperatedDatabase())
        let (context, ana) = (fixture.context, fixture.ana)
        let home = try #require(IPAddress("192.0.2.7"))
        _ = try await fixture.database.run(
            UsualNetworks(context).remembering(ana, epoch: ana.epoch, at: home, level: 0))
        try await RestoreDrill.run(
            [
                RestoreDrill(.networks, "a network") {
                    _ = try await context.database.run(
                        SQLStatement("UPDATE users SET epoch = epoch + 1 WHERE id = \(ana.id)", expecting: .exactly(1)))
                } again: {
                    let user = try #require(try await Users(context).find(id: ana.id))
                    return try await !UsualNetworks(context).sightings(of: user, at: home).isEmpty
                }
            ], on: context, covering: Self.networks)
    }

    /// The register gives it no kind, since nothing ends: what may have been used is refused from then on.
    @Test("An assertion by which a client has authenticated since the backup")
    func assertions() async throws {
        let operated = try await OperatedDatabase()
        let key = try AssertionKey()
        let fixture = try await ProviderFixture(clients: [AssertionKey.client([key])], operated: operated)
        let database = try #require(fixture.database as? RestorableDatabase)
        // From now on the database knows its key, and has one for tokens.
        try #require(try await MasterKeyCheck(fixture.context).isRight())
        let first = try await key.assertion(now: fixture.clock)
        #expect(try await fixture.refusal(first) == nil)
        let used = try await key.assertion(now: fixture.clock)
        try await database.backUp()
        #expect(try await fixture.refusal(used) == nil)
        #expect(try await fixture.refusal(used) == "invalid_client")
        try await database.restore()
        #expect(try await fixture.refusal(used) == nil, "the backup does not know")
        for options in [["--keep-sessions"], []] {
            try await database.restore()
            _ = try await database.fence(options)
            #expect(try await fixture.refusal(used) == "invalid_client", "\(options)")
        }
        operated.passTwoMinutes()
        #expect(try await fixture.refusal(try await key.assertion(now: fixture.clock)) == nil)
    }

    @Test("A request that was about to be forwarded has an unknown outcome after a restore, and not none")
    func lostOutcomes() async throws {
        for isFenced in [false, true] {
            let fixture = try await TransactionFixture()
            let id = try await fixture.approved()
            try #require(try await fixture.transactions.take(id: id, binding: try fixture.binding()).isTaken)
            if isFenced {
                #expect(
                    try await RestoredDatabase(fixture.context).fence(keepingSessions: true).counts[.lostOutcomes] == 1)
            }
            fixture.clock.advance(by: 601)
            #expect(try await fixture.transactions.recordLostOutcomes() == 1)
            let outcome = try await fixture.transactions.outcome(id: id, session: fixture.ana)?.outcome
            #expect(outcome == (isFenced ? .unknown : .notForwarded))
        }
    }

    @Test("The page names all that the fence ends, and what users hear of it")
    func page() throws {
        let section = try OperatingPage.section("### What `restore-fence` does")
        let words: [FencedKind: String] = [
            .sessions: "sessions", .grants: "grants", .consents: "consents",
            .networks: "usual networks", .tokenKeys: "keys for tokens",
            .codes: "authorization codes", .refreshTokens: "refresh tokens", .transactions: "open or approved",
            .lostOutcomes: "without an outcome", .journeySteps: "steps of journeys",
            .oneTimePasswords: "one-time passwords", .bootstrapTokens: "first administrator",
            .signingTransactions: "open transactions", .signingApprovals: "has not used", .invites: "invites",
            .enrolments: "enrolments, renewals", .evaluations: "PIN entries", .slots: "PINs",
            .registrationTokens: "initial access tokens", .webLinks: "links that sign browsers in",
            .deviceCodes: "one-time codes of devices",
            .nonces: "what devices have sent",
        ]
        for kind in FencedKind.allCases {
            let text = try #require(words[kind], "\(kind)")
            #expect(section.contains(text), "\(kind): \(text)")
        }
    }

    @Test("The page names all that an operator does again, of whatever table the register says so")
    func again() throws {
        let section = try OperatingPage.section("### What to do again after a restore")
        let words = [
            "users": "users who were locked", "totp_credentials": "second factor",
            "client_instances": "instances of apps", "payload_keys": "payload-keys",
            "signing_containers": "devices that were revoked",
            "signing_identities": "identity key", "signing_online_keys": "withdraw-online",
        ]
        // These say what happens, and ask nothing of anybody.
        let others: Set = ["audit", "signing_notices"]
        let named = Set(TableRegister.tables.filter { $0.remark.contains(" again") }.map(\.name))
        #expect(named.subtracting(others) == Set(words.keys))
        for (table, text) in words { #expect(section.contains(text), "\(table): \(text)") }
    }
}
