import Assent
import AssentTesting
import Foundation
import HTTPTypes
import Testing

@Suite("35: An app with a trust file does what the device configuration lets it do")
struct DeviceAdmissionTests {
    /// The app's servers, which tell what the test says.
    private struct World {
        let servers = Servers()
        let signer: SoftwareSigningKey
        let document = Locked<String?>(nil)
        let asked = Locked(0)
        /// What the server's word waits for.
        let held = Locked<Task<Void, Never>?>(nil)
        let directory = FileManager.default.temporaryDirectory.appending(path: "assent-\(SystemRandom().uuid())")

        static let issuer = "https://am.example.com/am/oauth2/realms/root/realms/alpha"

        init() throws { signer = try .generate(.es256) }

        /// The server tells this from now on; each time with a higher version.
        func tell(_ changes: [String: JSONValue?]) async throws {
            var changes = changes
            changes["version"] = .integer(servers.clock.epochSeconds)
            let text = try await servers.deviceConfiguration(changes, by: signer)
            document.withLock { $0 = text }
        }

        func assent(
            development: Bool = false, registers: Bool = false, vault: Assent.Vault = .memory
        ) async throws -> Assent {
            let file = try await servers.trustFile(sends: ["user"], development: development, config: signer)
            return try servers.assent { configuration in
                configuration.trust = file
                configuration.resources = [:]
                configuration.vault = vault
                configuration.deviceKeys = SoftwareKeyProvider(unprotectedFile: directory.appending(path: "device"))
                if registers {
                    configuration.registration = RegistrationConfiguration(
                        keys: SoftwareKeyProvider(unprotectedFile: directory.appending(path: "keys")))
                    configuration.registration?.deviceScopes = ["app-data"]
                }
                guard let inner = configuration.transport else { return }
                let (document, asked, held) = (document, asked, held)
                configuration.transport = InMemoryTransport { exchange in
                    let url = URLText.withoutQuery(exchange.request.url ?? "")
                    if url == "\(Self.issuer)/device_config" {
                        asked.withLock { $0 += 1 }
                        await held.withLock { $0 }?.value
                        guard let text = document.withLock({ $0 }) else { return .json(503, [:]) }
                        return HTTPReply(HTTPResponse(status: .ok), body: HTTPBody(text))
                    }
                    let reply = try await inner.send(
                        HTTPCall(
                            exchange.request.method, url: exchange.request.url ?? "",
                            headerFields: exchange.request.headerFields,
                            body: exchange.body.isEmpty ? nil : HTTPBody(exchange.body)))
                    guard url == "\(Self.issuer)/.well-known/openid-configuration" else { return reply }
                    var metadata = try JSONValue.parse(try await reply.body.collect(upTo: 1 << 16)).object
                    metadata?["assent_device_config_endpoint"] = .string("\(Self.issuer)/device_config")
                    return .json(200, .object(metadata ?? JSONObject()))
                }
            }
        }

        /// Lets the app hear what is told now.
        func hear(_ assent: Assent) async {
            servers.clock.advance(by: 300)
            _ = try? await assent.deviceClient.sendUnauthenticatedRequest(.get("https://api.bank.example/status"))
            await assent.shutdown()
        }
    }

    private static let address = "https://api.bank.example/accounts"

    private func fetch(_ assent: Assent) async -> Int? {
        do {
            _ = try await assent.deviceClient.sendUnauthenticatedRequest(.get(Self.address))
            return nil
        } catch {
            return error.number
        }
    }

    @Test(
        "A version that is disabled, or too old, calls nothing: 9004, and nothing leaves",
        arguments: [
            (["status": "disabled"], true), (["minimumVersion": "1"], true), (["status": "loginOnly"], false),
            (["minimumVersion": "0"], false), ([:], false),
        ] as [([String: JSONValue?], Bool)])
    func outdated(changes: [String: JSONValue?], isRefused: Bool) async throws {
        let world = try World()
        try await world.tell(changes)
        let assent = try await world.assent()
        #expect(await fetch(assent) == (isRefused ? 9004 : nil))
        #expect(world.servers.sent(Self.address).count == (isRefused ? 0 : 1))
        let journey = try? await assent.journey("Login") { step in
            step[NameCallback.self]?.name = "ana"
            return .next
        }
        #expect((journey == nil) == isRefused)
        #expect(world.servers.sent("/authenticate").isEmpty == isRefused)
        if isRefused {
            let error = await #expect(throws: ResourceError.self) { try await assent.logIn("ana", pin: Secret("1")) }
            #expect(error?.number == 9004)
        }
        await assent.shutdown()
    }

    @Test("An app for development is refused by a production server, and by no other")
    func development() async throws {
        let world = try World()
        try await world.tell([:])
        // The audience of the tests is app/linux/test.
        #expect(await fetch(try await world.assent(development: true)) == nil)
    }

    @Test("A change counts for the next calls, is kept for the next process, and no call waits for the server then")
    func changed() async throws {
        let world = try World()
        let store = MemorySecretStore(clock: world.servers.clock)
        try await world.tell([:])
        let assent = try await world.assent(vault: .store(store))
        #expect(await fetch(assent) == nil)
        try await world.tell(["status": "disabled"])
        #expect(await fetch(assent) == nil, "it was asked a moment ago")
        await world.hear(assent)
        #expect(await fetch(assent) == 9004)
        world.document.withLock { $0 = nil }
        #expect(await fetch(try await world.assent(vault: .store(store))) == 9004, "the last one counts")
        try await world.tell([:])
        await world.hear(assent)
        #expect(await fetch(assent) == nil)
    }

    @Test(
        "The first call of a process waits for the server's word no longer than it may take", arguments: [false, true])
    func patience(isJourney: Bool) async throws {
        let world = try World()
        try await world.tell([:])
        let (stream, gate) = AsyncStream.makeStream(of: Void.self)
        world.held.withLock { $0 = Task { for await _ in stream {} } }
        let assent = try await world.assent()
        let isOver = Locked(false)
        let call = Task { () -> Bool in
            defer { isOver.withLock { $0 = true } }
            guard isJourney else { return await fetch(assent) == -1001 }
            do {
                _ = try await assent.journey("Login") { _ in .next }
                return false
            } catch {
                return (error as? JourneyFailure)?.transportError?.code == .timedOut
            }
        }
        while !isOver.withLock({ $0 }) {
            if world.servers.clock.sleeperCount > 0 { world.servers.clock.advance(by: 60) }
            await Task.yield()
        }
        #expect(await call.value)
        #expect(world.servers.sent(Self.address).isEmpty && world.servers.sent("/authenticate").isEmpty)
        gate.finish()
        await assent.shutdown()
        #expect(await fetch(assent) == nil, "what came meanwhile counts")
    }

    @Test("Where the server was never heard, calls leave, and registering says 9001")
    func unheard() async throws {
        let world = try World()
        defer { try? FileManager.default.removeItem(at: world.directory) }
        let assent = try await world.assent(registers: true)
        #expect(await fetch(assent) == nil)
        func register() async -> Int? {
            do {
                try await assent.deviceClient.authenticateDevice(scopes: ["app-data"])
                return nil
            } catch {
                return error.number
            }
        }
        #expect(await register() == 9001)
        #expect(world.servers.sent("/register").isEmpty)
        world.servers.clock.advance(by: 300)
        try await world.tell(["status": "loginOnly"])
        #expect(await register() == 9004)
        #expect(world.servers.sent("/register").isEmpty)
        world.servers.clock.advance(by: 300)
        try await world.tell([:])
        _ = await register()
        #expect(world.servers.sent("/register").count == 1)
        // A registration that is there stays usable where only new ones are not wanted.
        world.servers.clock.advance(by: 300)
        try await world.tell(["status": "loginOnly"])
        await world.hear(assent)
        #expect(await fetch(assent) == nil)
        await assent.shutdown()
    }

    @Test("Kinds of sign-in and links that the server does not allow are refused here")
    func kinds() async throws {
        let world = try World()
        try await world.tell(["implicit": false, "stateless": false])
        let assent = try await world.assent()
        let implicit = await #expect(throws: ResourceError.self) {
            try await assent.userClient.implicitlyAuthenticate("ana", scopes: ["accounts"])
        }
        #expect(implicit?.number == 9026)
        let stateless = await #expect(throws: ResourceError.self) {
            try await assent.authenticateStateless("Login") { _ in .next }
        }
        #expect(stateless?.number == 9034)
        func link(_ target: String) async -> ResourceError? {
            do {
                _ = try await assent.userClient.webLink(to: target)
                return nil
            } catch {
                return error
            }
        }
        #expect(await link("https://shop.bank.example/a")?.number == 10023)
        #expect(world.servers.sent("/authenticate").isEmpty && world.servers.sent("/web_link").isEmpty)
        world.servers.clock.advance(by: 300)
        try await world.tell(["webLinks": ["https://shop.bank.example/a"]])
        await world.hear(assent)
        #expect(await link("https://shop.bank.example/b")?.number == 10015)
        // The listed one is for the server to refuse: nobody is signed in.
        #expect(await link("https://shop.bank.example/a")?.number == 9010)
        await assent.shutdown()
    }

    @Test("The rules for a PIN are told to the screen")
    func pin() async throws {
        let world = try World()
        let assent = try await world.assent()
        #expect(try await assent.pinRules() == nil)
        world.servers.clock.advance(by: 300)
        try await world.tell([
            "pin": [
                "minLength": 6, "maxLength": 12, "minNumeric": 6, "sequences": false, "common": false, "history": 0,
                "minAge": 0, "maxAge": 0, "cache": 0,
            ]
        ])
        let rules = try #require(try await assent.pinRules())
        #expect(rules.minLength == 6 && rules.least == [.numeric: 6])
        #expect(rules.broken(by: Secret("12ab")) == .minimumLength(6))
        #expect(try await Servers().assent().pinRules() == nil)
        await assent.shutdown()
    }

    @Test("An app without a trust file is told nothing and held to nothing")
    func without() async throws {
        let world = try World()
        try await world.tell(["status": "disabled"])
        let assent = try world.servers.assent()
        #expect(await fetch(assent) == nil)
        #expect(world.asked.withLock { $0 } == 0)
    }
}
