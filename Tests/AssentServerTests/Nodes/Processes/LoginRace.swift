#if PostgreSQL && os(Linux)
import AssentCore
import AssentJOSE
import AssentSigningProtocol
import AssentStore
import Foundation
import SigningTesting
import Testing

@testable import AssentEngine
@testable import AssentServer

/// Races logins of one evaluation, and guesses, at two processes, by a container of Ana's whose key for logins has the
/// PIN 2580.
actor LoginRace {
    /// What became of a race of guesses.
    struct Guesses {
        /// The numbers of the evaluations that were sent.
        var evaluated: [Int64] = []
        /// How many were counted by then, and in all.
        var counted: Int64 = 0
        var total: Int64 = 0
    }

    /// A login, with all that its request needs beside it.
    private struct Presented: Sendable {
        let jti: SigningID
        let form: [(String, String)]
        let proof: String
    }

    /// How many guesses the server evaluates.
    static let most: Int64 = 5

    private let nodes: RacedNodes
    private let key: ProofKey
    private let door: NodesDoor
    private let instance: String
    private let device: TestDevice
    private let container: TestDevice.Enrolled
    private let pin: TestPIN

    /// How many evaluations were raced.
    private var races: Int64 = 0

    init(_ world: NodeProcesses) async throws {
        key = try ProofKey()
        nodes = try await RacedNodes(world)
        door = NodesDoor(nodes)
        instance = try await Self.register(key, at: nodes)
        device = try TestDevice(door, modes: [.device, .assisted])
        let session = try await nodes.first.signIn("ana", password: try #require(nodes.first.password))
        let invite = try await door.ask("invites", [:], session: session)
        let pid = try #require(invite.json["pid"]?.string, "\(invite.text)")
        let code = try #require(invite.json["code"]?.string.flatMap { InviteCode(typed: $0) })
        (container, pin) = try await device.enrol(code, pin: "2580", for: "sign-in")
        let digits = try await door.ask(
            "invites/\(pid)/digits", ["digits": .string(container.digits)], session: session)
        try #require(digits.json == ["state": "ACTIVE"], "\(digits.text)")
        // As if the session that has made the invite belonged to the installation's key.
        _ = try await nodes.database.run(
            SQLStatement(
                "UPDATE signing_containers SET instance_id = \(instance) WHERE did = \(container.did.text)",
                expecting: .exactly(1)))
    }

    /// The file of the nodes with the app, and with logins by a PIN.
    static func file(_ text: String) -> String {
        text.replacing(
            "    defaultJourney: Quick\n",
            with: """
                    defaultJourney: Quick
                    signing:
                      name: Bank of Example
                      freshSeconds: 3600
                      policies:
                        pin:
                          mode: assisted
                          kdf: "$scrypt$ln=14,r=8,p=1"
                          password: {minLength: 4}
                          lock: {max: \(most), delays: []}
                      keys:
                        - {usage: sign, label: payments}
                        - {usage: auth, label: sign-in, policy: pin}
                      templates:
                        payment: {title: Confirm payment, ttl: 600, notShown: [/]}

                """, maxReplacements: 1
        ).replacing(
            "    clients:\n",
            with: """
                    apps:
                      pay:
                        name: Example Pay
                        redirectURIs: ["http://127.0.0.1/callback"]
                        scopes: [openid, accounts]
                        defaultScopes: [accounts]
                        idTokenAlgorithm: ES256
                        grantTypes: [authorization_code, "\(OAuthClient.GrantType.jwtBearer.rawValue)"]
                        registration: token
                    clients:

                """, maxReplacements: 1)
    }

    private static func register(_ key: ProofKey, at nodes: RacedNodes) async throws -> String {
        let token = try await nodes.initialToken()
        func send(nonce: String?) async throws -> Answer {
            try await RacedNodes.Registration(key, token, nonce: nonce).send(to: nodes.first)
        }
        var answer = try await send(nonce: nil)
        if answer.error == "use_dpop_nonce" {
            let fresh: String = try #require(answer["DPoP-Nonce"])
            answer = try await send(nonce: fresh)
        }
        return try #require(answer.json["client_id"]?.string, "\(answer.text)")
    }

    func close() async throws { try await nodes.close() }

    // MARK: - Logins

    /// Races two logins of a new evaluation, each at both nodes. With `killing` one node, by turns, is killed when so
    /// many requests were answered, and another process takes its place.
    func run(killing: Int?) async throws -> RaceOutcome<SigningID> {
        try await forgetCalls()
        let opened = try #require(try await pin.open("2580"))
        let nonce = try await nonce()
        var requests: [Presented] = []
        for jti in [SigningID(random: SystemRandom()), SigningID(random: SystemRandom())] {
            for _ in 0..<2 { requests.append(try await login(opened, jti, nonce: nonce)) }
        }
        var outcome = RaceOutcome<SigningID>()
        let answers = try await nodes.race(requests.count, killing: killing) { [requests] index, node in
            (requests[index].jti, try? await Self.send(requests[index], to: node))
        }
        for (jti, answer) in answers { note(answer, of: jti, isKilled: killing != nil, &outcome) }
        try await settle(opened, &outcome, isKilled: killing != nil)
        races += 1
        return outcome
    }

    private func note(_ answer: Answer?, of jti: SigningID, isKilled: Bool, _ outcome: inout RaceOutcome<SigningID>) {
        switch answer?.status {
        case 200: outcome.told.append(jti)
        case 400: #expect(answer?.error == "invalid_grant", "\(answer?.text ?? "")")
        case nil, 503: outcome.lose(answer, isKilled: isKilled)
        default: Issue.record("\(answer?.text ?? "")")
        }
    }

    /// Tries the evaluation once more at each node. It may only be good where a node was killed, and nobody has had it.
    private func settle(_ opened: TestPIN.Opened, _ outcome: inout RaceOutcome<SigningID>, isKilled: Bool) async throws
    {
        let nonce = try await nonce()
        for node in nodes.all {
            let jti = SigningID(random: SystemRandom())
            var answer = try await Self.send(try await login(opened, jti, nonce: nonce), to: node)
            for _ in 0..<20 where answer.status == 503 && isKilled {
                answer = try await Self.send(try await login(opened, jti, nonce: nonce), to: node)
            }
            if answer.status == 200, isKilled, outcome.told.isEmpty {
                outcome.told.append(jti)
            } else {
                #expect(answer.status == 400 && answer.error == "invalid_grant", "\(answer.text)")
                #expect(answer.json["assent_error"]?.string == "unlock_required", "\(answer.text)")
            }
        }
    }

    /// Holds the logins against the audit log: one for each evaluation, whether or not it was told.
    func compare() async throws {
        let event = AuditEvent.signingLogin.rawValue
        #expect(try await nodes.count("audit", "event = \(event) AND outcome = 'success'") == races)
    }

    // MARK: - Guesses

    /// Races twice as many guesses as there may be at both nodes, of which one may be killed; then makes all that are
    /// left, one after the other.
    func guess(killing: Int?) async throws -> Guesses {
        let before = try await forgive()
        let next = Secret(bytes: SystemRandom().bytes(32))
        let kept = pin.kept.withLock { kept in
            kept.next = kept.next ?? next
            return kept
        }
        let victim = nodes.victim
        var guesses = Guesses()
        await withTaskGroup(of: Int64?.self) { [pin] group in
            for index in 0..<Int(2 * Self.most) {
                group.addTask {
                    await NodesDoor.$index.withValue(index % 2) {
                        await Self.evaluation(pin, kept, next: kept.next ?? next, isKilled: killing != nil)
                    }
                }
            }
            if killing == 0 { victim.process.signal(SIGKILL) }
            var answered = 0
            for await n in group {
                if let n { guesses.evaluated.append(n - before) }
                answered += 1
                if answered == killing { victim.process.signal(SIGKILL) }
            }
        }
        if killing != nil { try await nodes.replaceVictim() }
        guesses.counted = try await counted() - before
        for _ in 0..<max(0, Self.most - guesses.counted) {
            let opened = try await pin.unlock("0000")
            #expect(opened == nil)
        }
        var code: String?
        do {
            _ = try await pin.unlock("2580")
        } catch let refusal as TestRefusal {
            code = refusal.code
        }
        #expect(code == "locked")
        guesses.total = try await counted() - before
        _ = try await forgive()
        return guesses
    }

    /// The number of an evaluation that a wrong PIN was sent for; `nil` for a refusal, or without an answer.
    private static func evaluation(
        _ pin: TestPIN, _ kept: TestPIN.Kept, next: Secret, isKilled: Bool
    ) async -> Int64? {
        do {
            let element = try ObliviousInput(Secret(bytes: SystemRandom().bytes(32))).element.bytes
            let (reply, request) = try await pin.device.call(
                "slots/unlock", pin.did, pin.body(kept, next: next, element: element))
            let evaluation = try await pin.device.trust().reply(
                reply, as: Evaluation.self, audience: pin.did.text, request: request)
            return evaluation.content.n.map { Int64($0) }
        } catch {
            let code = (error as? TestRefusal)?.code
            #expect(isKilled || code == "locked" || code == "unavailable", "\(code ?? "no answer"): \(error)")
            return nil
        }
    }

    private func counted() async throws -> Int64 {
        let rows = try await nodes.database.run(
            .read("SELECT n FROM signing_slots WHERE did = \(container.did.text)"))
        return try #require(rows.first).integer("n")
    }

    /// Lets the container make more calls than a device makes in a minute.
    private func forgetCalls() async throws {
        _ = try await nodes.database.run(
            SQLStatement("DELETE FROM attempts WHERE counter = \("signing:call:\(container.did)")"))
    }

    /// As the user's fresh authentication does, and more: these guesses are not held against the user for good.
    private func forgive() async throws -> Int64 {
        try await forgetCalls()
        _ = try await nodes.database.run(
            SQLStatement(
                "UPDATE signing_slots SET floor = n, unconfirmed = 0 WHERE did = \(container.did.text)",
                expecting: .exactly(1)))
        return try await counted()
    }

    // MARK: - Requests

    private var now: Int64 { SystemClock().epochSeconds }

    private static func send(_ presented: Presented, to node: ServeProcess) async throws -> Answer {
        try await RacedNodes.sendToken(presented.form, [("DPoP", presented.proof)], to: node)
    }

    /// A nonce, which a login must name.
    private func nonce() async throws -> String {
        let bare = try await login(nil, SigningID(random: SystemRandom()), nonce: nil)
        let asked = try await Self.send(bare, to: nodes.first)
        #expect(asked.status == 400 && asked.error == "use_dpop_nonce", "\(asked.text)")
        return try #require(asked["DPoP-Nonce"])
    }

    /// A login with the evaluation, or by the device key.
    private func login(_ opened: TestPIN.Opened?, _ jti: SigningID, nonce: String?) async throws -> Presented {
        let assertion = try await SignedMessage.sign(
            LoginAssertion(
                did: container.did, sub: container.sub, audience: RacedNodes.issuer,
                jkt: try #require(KeyThumbprint(text: key.thumbprint)), nonce: nonce ?? "nonce",
                unl: try opened?.unl, jti: jti, issuedAt: Int(now)), with: opened?.key ?? device.deviceKey
        ).compact
        let client = try await key.assertion(of: instance, to: RacedNodes.issuer, at: now, seconds: 3000)
        let subject = ProofKey.Subject(
            method: "POST", url: RacedNodes.issuer + "/access_token", token: "", nonce: nonce, issuedAt: now)
        return Presented(
            jti: jti,
            form: [("grant_type", OAuthClient.GrantType.jwtBearer.rawValue), ("assertion", assertion)] + client,
            proof: try await key.proof(subject, claims: { $0["ath"] = nil }))
    }
}
#endif
