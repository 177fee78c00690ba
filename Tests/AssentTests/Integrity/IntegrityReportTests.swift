import Assent
import AssentTesting
import Foundation
import HTTPTypes
import Testing

@Suite("What the probes have found is told to the server once")
struct IntegrityReportTests {
    private struct Injected: IntegrityProbe {
        let kind: IntegrityKind
        var found: String? = "A test says so."
        func finding() -> String? { found }
    }

    /// The app's servers, one of which takes reports.
    private final class World: Sendable {
        let servers = Servers()
        let reports = Locked<[InMemoryTransport.Exchange]>([])
        /// The statuses of the answers, of which the last one stays.
        let statuses = Locked([204])
        let hasEndpoint = Locked(true)
        /// What an answer to a report waits for.
        let held = Locked<Task<Void, Never>?>(nil)

        static let issuer = "https://am.example.com/am/oauth2/realms/root/realms/alpha"

        func assent(
            _ probes: [any IntegrityProbe], _ change: (inout Assent.Configuration) -> Void = { _ in }
        ) throws -> Assent {
            try servers.assent { configuration in
                configuration.integrity.probes = probes
                if let inner = configuration.transport {
                    configuration.transport = InMemoryTransport { [self] exchange in
                        try await answer(exchange, else: inner)
                    }
                }
                change(&configuration)
            }
        }

        private func answer(
            _ exchange: InMemoryTransport.Exchange, else inner: any HTTPTransport
        ) async throws -> HTTPReply {
            let url = exchange.request.url ?? ""
            if url == "\(Self.issuer)/reports" {
                reports.withLock { $0.append(exchange) }
                await held.withLock { $0 }?.value
                let status = statuses.withLock { $0.count > 1 ? $0.removeFirst() : $0[0] }
                guard status == 401, let name = HTTPField.Name("DPoP-Nonce") else {
                    return HTTPReply(HTTPResponse(status: .init(code: status)))
                }
                return .json(400, ["error": "use_dpop_nonce"], headers: [name: "fresh"])
            }
            let reply = try await inner.send(
                HTTPCall(
                    exchange.request.method, url: url, headerFields: exchange.request.headerFields,
                    body: exchange.body.isEmpty ? nil : HTTPBody(exchange.body)))
            guard url == "\(Self.issuer)/.well-known/openid-configuration", hasEndpoint.withLock({ $0 }) else {
                return reply
            }
            var metadata = try JSONValue.parse(try await reply.body.collect(upTo: 1 << 16)).object ?? JSONObject()
            metadata["assent_reports_endpoint"] = .string("\(Self.issuer)/reports")
            return .json(200, .object(metadata))
        }

        var told: [JSONValue] {
            get throws { try reports.withLock { $0 }.map { try JSONValue.parse($0.body) } }
        }
    }

    private static let address = "https://api.bank.example/status"

    private func fetch(_ assent: Assent) async -> Bool {
        (try? await assent.deviceClient.sendUnauthenticatedRequest(.get(Self.address))) != nil
    }

    @Test("It is sent with the first fetch, also of one that is refused, and carries kinds and no credential")
    func once() async throws {
        let world = World()
        let assent = try world.assent([
            Injected(kind: .debugger), Injected(kind: .debugger), Injected(kind: .preload), Injected(kind: .rooted),
        ]) {
            $0.integrity.controls = IntegrityControls(debugger: .refuse, preload: .report, rooted: .off)
            $0.client.version = "3.2.0"
        }
        await assent.shutdown()
        #expect(world.servers.sent("").isEmpty, "making the app sends nothing")
        for _ in 1...3 {
            #expect(await fetch(assent) == false)
            await assent.shutdown()
        }
        let told = try world.told
        #expect(told.count == 1 && world.servers.sent("bank.example").isEmpty)
        let expected: JSONValue = [
            "v": 1, "app": "app", "version": "3.2.0", "platform": .string(HostPlatform.name),
            "findings": [["probe": "debugger", "calls": "refused"], ["probe": "preload", "calls": "sent"]],
        ]
        #expect(told.first == expected)
        let fields = world.reports.withLock { $0.first?.request.headerFields }
        #expect(fields?[.authorization] == nil && fields?[.cookie] == nil)
    }

    @Test("No fetch waits for it")
    func never() async throws {
        let world = World()
        let (stream, gate) = AsyncStream.makeStream(of: Void.self)
        world.held.withLock { $0 = Task { for await _ in stream {} } }
        let assent = try world.assent([Injected(kind: .rooted)])
        // The answer to the report comes after both.
        #expect(await fetch(assent))
        #expect(await fetch(assent))
        gate.finish()
        await assent.shutdown()
        #expect(try world.told.count == 1)
    }

    @Test("Nothing is sent where nothing was found, the server takes no reports, or the app does not want it")
    func nothing() async throws {
        let quiet = World()
        let clean = try quiet.assent([Injected(kind: .debugger, found: nil)])
        #expect(await fetch(clean))
        await clean.shutdown()
        #expect(quiet.servers.sent("am.example.com").isEmpty)

        let deaf = World()
        deaf.hasEndpoint.withLock { $0 = false }
        let told = try deaf.assent([Injected(kind: .debugger)])
        for _ in 1...2 {
            #expect(await fetch(told))
            await told.shutdown()
            deaf.servers.clock.advance(by: 3600)
        }
        #expect(deaf.servers.sent(".well-known").count == 1 && deaf.reports.withLock { $0.isEmpty })

        let silent = World()
        let unwilling = try silent.assent([Injected(kind: .debugger)]) { $0.integrity.tellsServer = false }
        #expect(await fetch(unwilling))
        await unwilling.shutdown()
        #expect(silent.servers.sent("am.example.com").isEmpty)
    }

    @Test("What failed is tried again a minute later, three times in all; what the server refuses is not")
    func failures() async throws {
        let world = World()
        world.statuses.withLock { $0 = [503, 429, 500] }
        let assent = try world.assent([Injected(kind: .debugger)])
        func step(_ seconds: Double) async {
            _ = await fetch(assent)
            await assent.shutdown()
            world.servers.clock.advance(by: seconds)
        }
        await step(59)
        await step(1)
        #expect(try world.told.count == 1)
        for _ in 1...4 { await step(60) }
        #expect(try world.told.count == 3)

        let refusing = World()
        refusing.statuses.withLock { $0 = [400] }
        let other = try refusing.assent([Injected(kind: .debugger)])
        for _ in 1...2 {
            _ = await fetch(other)
            await other.shutdown()
            refusing.servers.clock.advance(by: 60)
        }
        #expect(try refusing.told.count == 1)
    }

    @Test("An installation that is registered proves its key, with the server's nonce when it wants one")
    func installation() async throws {
        let directory = FileManager.default.temporaryDirectory.appending(path: "assent-\(SystemRandom().uuid())")
        defer { try? FileManager.default.removeItem(at: directory) }
        let world = World()
        world.statuses.withLock { $0 = [401, 204] }
        let found = Locked<String?>(nil)
        let assent = try world.assent([Changing(found: found)]) {
            $0.registration = RegistrationConfiguration(
                keys: SoftwareKeyProvider(unprotectedFile: directory.appending(path: "keys")))
        }
        try await assent.registration?.register()
        found.withLock { $0 = "A test says so." }
        _ = await fetch(assent)
        await assent.shutdown()
        let sent = world.reports.withLock { $0 }
        #expect(sent.count == 2)
        let name = try #require(HTTPField.Name("DPoP"))
        var nonces: [String?] = []
        for exchange in sent {
            #expect(try JSONValue.parse(exchange.body)["client"] == "app~1")
            let proof = try UnverifiedJWS.parse(try #require(exchange.request.headerFields[name]))
            let claims = try JSONValue.parse(proof.payload)
            #expect(claims["pe"]?.string == Base64URL.encode(SHA2.sha256(exchange.body)))
            #expect(claims["htm"] == "POST" && claims["htu"]?.string == "\(World.issuer)/reports")
            #expect(exchange.request.headerFields[.authorization] == nil)
            nonces.append(claims["nonce"]?.string)
        }
        #expect(nonces == [nil, "fresh"])
    }

    private struct Changing: IntegrityProbe {
        let kind = IntegrityKind.debugger
        let found: Locked<String?>
        func finding() -> String? { found.withLock { $0 } }
    }
}
