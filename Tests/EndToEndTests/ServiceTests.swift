import Assent
import AssentCore
import AssentEnforcement
import AssentServer
import AssentTransportNIO
import Foundation
import HTTPTypes
import Hummingbird
import TestSupport
import Testing

@testable import AssentDemo
@testable import AssentExampleService

/// The example service with its middleware, the real server, and an app with the SDK.
@Suite("A service of its own that asks the policies, on real sockets")
struct ServiceTests {
    /// The network of the app, whose way to the service is plain HTTP. While told to, it has no connection for calls of
    /// the SDK that name a transaction.
    private struct Network: Sendable {
        let drops = Locked(false)
        let plain: NIOTransport

        init() throws {
            plain = try NIOTransport(
                configuration: NIOTransportConfiguration(pins: [:], allowPlaintextLoopback: true)
                    .withLeastLimit(.seconds(Patience.seconds)))
        }

        func watching(_ transport: any HTTPTransport) -> any HTTPTransport { Way(network: self, secure: transport) }

        private struct Way: HTTPTransport {
            let network: Network
            let secure: any HTTPTransport

            @concurrent func send(_ call: HTTPCall) async throws -> HTTPReply {
                guard call.request.scheme == "http" else { return try await secure.send(call) }
                let isRepetition = call.request.path?.contains("_txid=") == true
                let isDropped = isRepetition && network.drops.withLock { $0 }
                if isDropped { throw HTTPTransportError(.connectFailed, "There is no connection.") }
                return try await network.plain.send(call)
            }
        }
    }

    /// The bank's file with what Examples/service/assent.yaml says a service needs.
    private static func addition() throws -> @Sendable (String) -> String {
        let path = World.package.appendingPathComponent("Examples/service/assent.yaml").path
        let lines = try String(contentsOfFile: path, encoding: .utf8).components(separatedBy: "\n")
        func block(_ key: String) throws -> String {
            let start = try #require(lines.firstIndex(of: key + ":"))
            let rows = lines[(start + 1)...].prefix { $0.hasPrefix("  ") }
            return rows.map { "    \($0)\n" }.joined()
        }
        let (users, journeys, sets) = (try block("users"), try block("journeys"), try block("policySets"))
        return { file in
            file.replacing("\n    journeys:\n", with: "\(users)\n    journeys:\n\(journeys)\n")
                .replacing("\n    policySets:\n", with: "\n    policySets:\n\(sets)\n")
        }
    }

    /// Runs the service beside `body`, which is told its URL and what it was paid.
    private func withService(
        of story: Story, askingAt server: String, _ body: (String, Payments) async throws -> Void
    ) async throws {
        let user = try #require(story.world.endpoints.accounts.first(where: { $0.username == "payments" }))
        let place = try PolicyServer(
            server, realm: "alpha", sessionCookieName: story.world.endpoints.cookieName)
        let account = ServiceAccount(
            place, journey: "Service", username: user.username, password: user.password, transport: story.transport)
        let policies = PolicyClient(
            place, policySet: "payments", credentials: account, transport: story.transport, logger: story.logger)
        let payments = Payments()
        // The service knows its own origin before it listens.
        let port = Locked<Int?>(nil)
        let relay = try await Relay.start { port.withLock { $0 } }
        let origin = "http://127.0.0.1:\(relay.port)"
        let router = try paymentRouter(policies, origin: origin, payments: payments)
        do {
            try await withLoopbackService(router.buildResponder()) { number in
                port.withLock { $0 = number }
                try await body(origin + "/payments", payments)
            }
        } catch {
            try? await relay.stop()
            throw error
        }
        try await relay.stop()
    }

    private func app(_ story: Story, _ url: String) throws -> Assent {
        try story.makeAssent(vault: "service") { configuration, _ in
            configuration.resources = [url.replacing("/payments", with: ""): .session]
        }
    }

    /// Sends what the app would, without it.
    private func raw(
        _ story: Story, _ url: String, _ json: JSONValue, session: Secret?, id: String? = nil
    ) async throws -> (status: Int, json: JSONValue, challenge: String?) {
        var pairs: [(String, String)] = []
        if let session { pairs.append((story.world.endpoints.cookieName, session.reveal())) }
        if let id { pairs.append(("X-TxID", id)) }
        let reply = try await story.post(url, json, pairs)
        return (
            reply.status, try JSONValue.parse(try await reply.body.collect(upTo: 1 << 16)),
            reply.response.headerFields[.wwwAuthenticate]
        )
    }

    private static let dearer: JSONValue = ["to": "Bob", "amount": "900.00", "currency": "EUR"]
    private static let hidden: JSONValue = ["to": "Bob", "amount": "1.00", "currency": "EUR", "iban": "XX00"]

    @Test("The app is asked and pays once; again, changed, in another session and with an unseen member it is refused")
    func pays() async throws {
        let network = try Network()
        try await World.run(
            logger: CollectingLog().logger, watching: network.watching, editing: try Self.addition()
        ) { story in
            try await withService(of: story, askingAt: story.world.endpoints.server) { url, payments in
                let assent = try app(story, url)
                try await story.signIn(assent, forcing: false)
                let session = try #require(try await assent.tokens.session()).token
                let approved = Locked<[String]>([])
                let shown = Locked<[String]>([])
                func pay() async throws -> HTTPReply {
                    try await assent.send(.post(url, json: Story.transfer)) { approval in
                        if approval.isFirstStep {
                            let lines = approval.display.map { "\($0.label): \($0.value)" }
                            shown.withLock { $0 = lines }
                            let id = approval.transactionID
                            approved.withLock { $0.append(id ?? "") }
                        }
                        return try story.answer(&approval)
                    }
                }
                let reply = try await pay()
                #expect(reply.status == 201)
                let spent = try #require(approved.withLock { $0.last })
                #expect(
                    try JSONValue.parse(try await reply.body.collect(upTo: 1 << 16))["payer"]?.string
                        == story.world.account.username)
                #expect(await payments.all.keys.sorted() == [spent])
                #expect(shown.withLock { $0 } == ["Amount: 200.00 EUR", "To: Bob"])

                // Ten times at once with the same id.
                let answers = try await withThrowingTaskGroup(of: (Int, JSONValue).self) { group in
                    for _ in 0..<10 {
                        group.addTask {
                            let answer = try await raw(story, url, Story.transfer, session: session, id: spent)
                            return (answer.status, answer.json)
                        }
                    }
                    return try await group.reduce(into: [(Int, JSONValue)]()) { $0.append($1) }
                }
                for (status, json) in answers {
                    #expect(status == 409)
                    #expect(json["outcome"] == ["state": "answered", "status": 201])
                    #expect(json["transaction"]?.string == spent)
                }

                // Approved, and not yet sent.
                network.drops.withLock { $0 = true }
                let unsent = await #expect(throws: AuthorizationError.self) { try await pay() }
                #expect(unsent?.code == .notSent)
                let id = try #require(approved.withLock { $0.last })
                #expect(id != spent)
                let changed = try await raw(story, url, Self.dearer, session: session, id: id)
                #expect(changed.status == 403 && changed.challenge == nil)
                let second = try story.makeAssent(vault: "second")
                try await story.signIn(second, forcing: true)
                let other = try #require(try await second.tokens.session()).token
                #expect(try await raw(story, url, Story.transfer, session: other, id: id).status == 403)
                #expect(try await raw(story, url, Story.transfer, session: nil, id: id).status == 401)
                #expect(await payments.all.count == 1)
                #expect(try await raw(story, url, Story.transfer, session: session, id: id).status == 201)
                #expect(await payments.all.keys.sorted() == [spent, id].sorted())

                let unseen = try await raw(story, url, Self.hidden, session: session)
                #expect(unseen.status == 400 && unseen.json["detail"]?.string?.contains("iban") == true)
                #expect(await payments.all.count == 2)
                for app in [assent, second] { await app.shutdown() }
            }
        }
        await network.plain.shutdown()
    }

    @Test("When the policy server is away the service pays nothing, and says so")
    func away() async throws {
        let network = try Network()
        try await World.run(
            logger: CollectingLog().logger, watching: network.watching, editing: try Self.addition()
        ) { story in
            try await withService(of: story, askingAt: "https://localhost:1/am") { url, payments in
                let assent = try app(story, url)
                try await story.signIn(assent, forcing: false)
                let session = try #require(try await assent.tokens.session()).token
                for id in [nil, "some-id"] {
                    let reply = try await raw(story, url, Story.transfer, session: session, id: id)
                    #expect(reply.status == 503 && reply.json["forwarded"] == "no")
                }
                #expect(try await assent.send(.post(url, json: Story.transfer)).status == 503)
                #expect(await payments.all.isEmpty)
                await assent.shutdown()
            }
        }
        await network.plain.shutdown()
    }

    @Test("The page has each setting that the program reads, and no other")
    func settings() throws {
        let page = try DocumentedPage("Examples/service/README.md")
        let words = page.blocks.flatMap(\.commands).flatMap { ShellLine($0).commands }.flatMap(\.self)
        let named = Set(words.compactMap { $0.firstMatch(of: /^([A-Z_]+)=/).map { String($0.output.1) } })
        let program = try String(
            contentsOfFile: DocumentedPage.root + "/Examples/service/Sources/Service.swift", encoding: .utf8)
        let read = Set(program.matches(of: /"((?:AM|SERVICE)_[A-Z_]+)"/).map { String($0.output.1) })
        #expect(named == read && read.count == 10)
    }
}
