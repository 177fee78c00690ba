package import Assent
import AssentOTP
import AssentServer
import Foundation
import HTTPTypes
package import Logging

/// The story that every part of Assent serves, on real sockets: sign in, read, be asked, approve, pay once; and
/// everything that must not work.
package struct Story: Sendable {
    let world: DemoWorld
    let clock: DemoClock
    let narration: Narration

    private let seen = Locked<[(name: String, secret: Secret)]>([])

    /// What is kept of the payment that was signed.
    let evidence = Locked<Evidence?>(nil)

    /// The pinned transport that the apps of the story share, as they use it.
    let transport: any HTTPTransport
    private let connections: NIOTransport

    /// What apps and transport log to.
    let logger: Logger

    /// A story. `watching` may put something between apps and network that sees what goes over the wire.
    package init(
        world: DemoWorld, clock: DemoClock, narration: Narration,
        logger: Logger = Logger(label: "demo", factory: { _ in SwiftLogNoOpLogHandler() }),
        watching: (any HTTPTransport) -> any HTTPTransport = { $0 }
    ) throws {
        self.world = world
        self.clock = clock
        self.narration = narration
        self.logger = logger
        connections = try Self.connections(to: world, clock: clock, logger: logger)
        transport = watching(connections)
    }

    /// A pinned transport with connections of its own.
    static func connections(to world: DemoWorld, clock: any WallClock, logger: Logger) throws -> NIOTransport {
        let hosts = Set(
            [world.endpoints.server, world.endpoints.gateway ?? ""].compactMap { try? Origin($0).host.description })
        var roots = TrustRoots.system
        if let file = world.endpoints.authorityFile { roots = .pemFile(file) }
        var configuration = NIOTransportConfiguration(
            trustRoots: roots,
            pins: Dictionary(uniqueKeysWithValues: hosts.map { ($0, .pins(world.endpoints.pins)) }))
        if let least = world.leastLimit {
            configuration.leastLimit = least
            // The reply that is cut off must come on a connection that is there already: of a new one, the cut would
            // take the handshake.
            configuration.idleTimeout = max(configuration.idleTimeout, least)
        }
        return try NIOTransport(configuration: configuration, clock: clock, logger: logger)
    }

    /// Who answers at which port.
    var parties: [Int: Narration.Party] {
        var parties: [Int: Narration.Party] = [:]
        if let port = try? Origin(world.endpoints.server).port { parties[port] = .server }
        for url in [gateway, world.elsewhere.url] {
            if let port = try? Origin(url).port { parties[port] = .gateway }
        }
        return parties
    }

    /// The transfer that the user means.
    static let transfer: JSONValue = ["to": "Bob", "amount": "200.00", "currency": "EUR"]

    var gateway: String { world.endpoints.gateway ?? "" }
    var transfers: String { gateway + "/transfers" }

    /// Tells the whole story but its end without a server (``judgeEvidence()``). Nothing is thrown for a check that
    /// fails: it is in the narration.
    package func tell() async throws {
        let assent = try makeAssent()
        try await signIn(assent)
        try await read(assent)
        try await beAsked(assent)
        let spent = try await pay(assent)
        try await misuse(assent, spent: spent)
        try await refreshMeanwhile(assent)
        try await loseReply(assent)
        try await decline(assent)
        try await guardByKey(with: assent)
        try await KindsScene(self).tell(with: assent)
        try await SealedScene(self).tell(with: assent)
        try await ElsewhereScene(self).tell(with: assent)
        try await signOnPhone(assent)
        try await signOut(assent)
        await assent.shutdown()
        await connections.shutdown()
    }

    /// The SDK as an app would make it, with the pins that the server printed; over connections of its own if they are
    /// given.
    func makeAssent(
        vault name: String = "vault", over connections: NIOTransport? = nil,
        configure: (inout Assent.Configuration, any KeyProvider) throws -> Void = { _, _ in }
    ) throws -> Assent {
        let keys = SoftwareKeyProvider(unprotectedFile: keyFile(ofVault: name), clock: clock)
        var configuration = world.app.configuration(
            .file(at: URL(fileURLWithPath: "\(world.directory)/\(name)"), keys: .software(keys)))
        configuration.resources[world.elsewhere.url] = configuration.resources[gateway]
        try configure(&configuration, keys)
        configuration.transport = NarratingTransport(
            transport: connections ?? transport, narration: narration, parties: parties)
        configuration.clock = clock
        configuration.logger = logger
        return try Assent(configuration)
    }

    /// The file with the keys of an app's vault.
    func keyFile(ofVault name: String) -> URL { URL(fileURLWithPath: "\(world.directory)/\(name).key") }

    // MARK: The steps

    private func signIn(_ assent: Assent) async throws {
        narration.tell(
            .step(number: 1, title: "Ana signs in: password, then a code; a code flow gives the app its tokens"))
        let pins = world.endpoints.pins.count
        narration.tell(.note(.app, "trusts only chains with one of \(pins) pinned keys"))
        try await signIn(assent, forcing: false)
        let tokens = try await assent.tokens.tokens()
        remember("access token", tokens.accessToken.signature)
        if let refresh = tokens.refreshToken { remember("refresh token", refresh) }
        if let session = try await assent.tokens.session() { remember("session token", session.token) }
        remember("password", world.account.password)
        remember("TOTP seed", world.account.totpSeed)
        remember("TOTP seed in base 32", Secret(Base32.encode(world.account.totpSeed.revealBytes())))
        check(
            "session and tokens are in the sealed vault", try await assent.user() != nil && !tokens.accessToken.isEmpty)
    }

    /// Everything secret that this run has seen, for who looks for leaks.
    var secrets: [(name: String, secret: Secret)] { seen.withLock { $0 } }

    func remember(_ name: String, _ secret: Secret) {
        seen.withLock { $0.append((name, secret)) }
    }

    /// Signs in with a fresh code.
    func signIn(_ assent: Assent, forcing: Bool) async throws {
        try await assent.journey("Login", options: .init(forceAuth: forcing)) { step in
            step[NameCallback.self]?.name = world.account.username
            step[PasswordCallback.self]?.password = world.account.password.reveal()
            if step[TextInputCallback.self] != nil {
                let code = try freshCode()
                step[TextInputCallback.self]?.text = code
                narration.tell(.note(.user, "types the code that her authenticator shows"))
            }
            return .next
        }
    }

    private func read(_ assent: Assent) async throws {
        narration.tell(.step(number: 2, title: "The app reads her balance"))
        check("1000.00 EUR, allowed by the policy 'read'", try await balance(assent) == "1000.00")
    }

    private func beAsked(_ assent: Assent) async throws {
        narration.tell(.step(number: 3, title: "A payment needs her approval: the advice in its three forms"))
        let header = try await raw(assent, Self.transfer, id: nil)
        check("asked for by header: 401 with a challenge", try ReceivedAdvice(header.response)?.form == .header)
        let redirect = try await raw(assent, Self.transfer, id: nil, wishingHeader: false)
        check("otherwise: 307 to the server", try ReceivedAdvice(redirect.response)?.form == .redirect)
        let decision = try await evaluate(assent)
        check("from a policy decision: JSON", ReceivedAdvice(decision: decision)?.advice.transactionID != nil)
    }

    private func pay(_ assent: Assent) async throws -> String {
        narration.tell(
            .step(number: 4, title: "She pays 200 EUR to Bob: refused with an advice, approved, repeated, paid once"))
        let approved = Locked<String?>(nil)
        let reply = try await assent.send(.post(transfers, json: Self.transfer)) { approval in
            if approval.step[ConfirmationCallback.self] != nil {
                let shown = approval.display.map { "\($0.label): \($0.value)" }.joined(separator: ", ")
                narration.tell(.note(.user, "is shown “\(DisplayText.escapedForTerminal(shown))” and approves"))
                check("what is shown was made from the request's own body", shown == "Amount: 200.00 EUR, To: Bob")
                if case .stated(let parts) = approval.binding {
                    check(
                        "the app compared \(parts.count) parts of the approval with the request that it repeats",
                        parts.contains(.body) && parts.contains(.method))
                } else {
                    check("the server says what the approval is for", false)
                }
                let id = approval.transactionID
                approved.withLock { $0 = id }
            }
            return try answer(&approval)
        }
        check("201 Created", reply.status == 201)
        check("the money moved", try await balance(assent) == "800.00")
        return approved.withLock { $0 } ?? ""
    }

    private func misuse(_ assent: Assent, spent: String) async throws {
        narration.tell(.step(number: 5, title: "The approval is spent, and was never good for anything else"))
        let again = try await raw(assent, Self.transfer, id: spent)
        check("the same id again: 409, with what became of it", again.status == 409)
        let completed = try await approve(assent, Self.transfer)
        let other: JSONValue = ["to": "Bob", "amount": "900.00", "currency": "EUR"]
        check("another amount with an approved id: 403", try await raw(assent, other, id: completed).status == 403)
        let second = try makeAssent(vault: "second")
        try await signIn(second, forcing: true)
        check("another session with it: 403", try await raw(second, Self.transfer, id: completed).status == 403)
        await second.shutdown()
        narration.tell(.note(.app, "sends 50 requests with the one approved id at the same time"))
        let statuses = try await withThrowingTaskGroup(of: Int.self) { group in
            for _ in 0..<50 {
                group.addTask { try await raw(assent, Self.transfer, id: completed, quietly: true).status }
            }
            return try await group.reduce(into: [Int]()) { $0.append($1) }
        }
        let wins = statuses.count { $0 == 201 }
        let tellers = statuses.count { $0 == 409 }
        check("of 50, \(wins) was let through and \(tellers) were told that it was used", wins == 1 && tellers == 49)
        let late = try await approve(assent, Self.transfer)
        move(181, "three minutes later")
        check("after its time to live: 403", try await raw(assent, Self.transfer, id: late).status == 403)
        check("one more transfer was paid, no other", try await balance(assent) == "600.00")
        let reasons = try await world.refusals(transactionID: completed)
        check(
            "the audit log names what did not match: \(reasons.prefix(2).joined(separator: ", "))",
            reasons.count { $0 == "body" } == 1 && reasons.count { $0 == "session" || $0 == "grant" } == 1)
        check("and for the late one: expired", try await world.refusals(transactionID: late) == ["expired"])
    }

    private func refreshMeanwhile(_ assent: Assent) async throws {
        narration.tell(.step(number: 6, title: "The access token is refreshed between advice and retry"))
        let before = try await assent.tokens.tokens().accessToken
        let reply = try await assent.send(.post(transfers, json: Self.transfer)) { approval in
            if approval.step[TextInputCallback.self] != nil {
                _ = try await assent.tokens.tokens(rejecting: before)
            }
            return try answer(&approval)
        }
        let after = try await assent.tokens.tokens().accessToken
        check("another token, the same approval: 201", reply.status == 201 && before != after)
    }

    private func loseReply(_ assent: Assent) async throws {
        narration.tell(.step(number: 7, title: "The reply is cut off after the bank has paid"))
        let call = ResourceRequest.post(transfers, json: Self.transfer)
        do {
            _ = try await assent.send(call) { approval in
                if approval.step[TextInputCallback.self] != nil { world.relay.cutNextReply() }
                return try answer(&approval)
            }
            check("the app is told that the outcome is unknown", false)
        } catch let error as AuthorizationError where error.code == .outcomeUnknown {
            narration.tell(.note(.app, "outcome unknown; it keeps the transaction's id and repeats nothing"))
            guard let pending = error.pending else {
                check("the error has the transaction's id", false)
                return
            }
            let reply = try await assent.ask(call, about: pending)
            let told = try JSONValue.parse(try await reply.body.collect(upTo: 1 << 16))
            check(
                "asked again, the gateway tells: forwarded, answered 201",
                reply.status == 409 && told["outcome"]?["status"]?.integer == 201)
        }
        check("paid once", try await balance(assent) == "200.00")
    }

    private func decline(_ assent: Assent) async throws {
        narration.tell(.step(number: 8, title: "She declines; a payee with terminal escapes is not even shown"))
        do {
            _ = try await assent.send(.post(transfers, json: Self.transfer)) { _ in .decline }
            check("declining ends it", false)
        } catch let error as AuthorizationError where error.code == .declined {
            check("declining ends it", true)
        }
        let evil: JSONValue = ["to": "Bob\u{1B}[2K\u{1B}[1A", "amount": "1.00", "currency": "EUR"]
        let reply = try await assent.send(.post(transfers, json: evil)) { _ in .decline }
        check("a payee with escape codes: 400", reply.status == 400)
        check("nothing was paid", try await balance(assent) == "200.00")
    }

    private func signOut(_ assent: Assent) async throws {
        narration.tell(.step(number: 14, title: "She signs out: tokens revoked, session ended, vault emptied"))
        let session = try await assent.tokens.session()
        let tokens = try await assent.tokens.tokens()
        let result = await assent.signOut()
        check("the server was told everything", result.undone.isEmpty)
        check("the vault is empty", try await assent.user() == nil)
        let old = HTTPFields([.init(name: .authorization, value: "Bearer \(tokens.accessToken.reveal())")])
        check("the old access token: 401 at once", try await plain(old) == 401)
        if let session, let name = HTTPField.Name(world.endpoints.cookieName) {
            let field = HTTPFields([.init(name: name, value: session.token.reveal())])
            check("the old session: 401 at once", try await plain(field) == 401)
        }
    }

    // MARK: Pieces

    /// Approves what a step asks: yes, then a fresh code.
    func answer(_ approval: inout Approval) throws -> StepAction {
        if let options = approval.step[ConfirmationCallback.self]?.options {
            approval.step[ConfirmationCallback.self]?.selectedValue = options.first?.value
        }
        if approval.step[TextInputCallback.self] != nil {
            let code = try freshCode()
            approval.step[TextInputCallback.self]?.text = code
            narration.tell(.note(.user, "types a new code"))
        }
        return .next
    }

    /// A code that was never used: a code is accepted once, so the clock moves on to the next.
    func freshCode() throws -> String {
        move(30, "the authenticator shows the next code")
        let code = try TOTP(secret: world.account.totpSeed).code(at: clock.now)
        remember("TOTP code", Secret(code))
        return code
    }

    func move(_ seconds: Double, _ why: String) {
        clock.advance(by: seconds)
        narration.tell(.clock("moved \(Int(seconds)) s, \(why)"))
    }

    func check(_ text: String, _ passed: Bool) {
        narration.tell(.check(text, passed: passed))
    }

    func balance(_ assent: Assent) async throws -> String? {
        let reply = try await assent.send(.get(gateway + "/accounts"))
        return try JSONValue.parse(try await reply.body.collect(upTo: 1 << 16))["balance"]?.string
    }
}

extension Secret {
    /// The part of a JWT that is secret: the first two say "localhost" in base 64, which a certificate does too.
    var signature: Secret { Secret(reveal().split(separator: ".").last.map(String.init) ?? "") }
}
