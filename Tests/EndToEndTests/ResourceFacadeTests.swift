import Assent
import AssentCore
import AssentServer
import Foundation
import HTTPTypes
import TestSupport
import Testing

@testable import AssentDemo

/// Calls of each kind by the façade alone, over the real transport, TLS and the real gateway.
@Suite("The façade's clients of users, installations and nobody")
struct ResourceFacadeTests {
    /// What went to one path of the gateway, and what came back.
    private struct Wire: Sendable {
        private let kept = Locked<[(fields: HTTPFields, status: Int, challenge: String?)]>([])
        let path: String

        var calls: [(fields: HTTPFields, status: Int, challenge: String?)] { kept.withLock { $0 } }

        func watching(_ transport: any HTTPTransport) -> any HTTPTransport {
            Watched(wire: self, transport: transport)
        }

        private struct Watched: HTTPTransport {
            let wire: Wire
            let transport: any HTTPTransport

            @concurrent func send(_ call: HTTPCall) async throws -> HTTPReply {
                let reply = try await transport.send(call)
                if URLText.withoutQuery(call.request.path ?? "") == wire.path {
                    let fields = call.request.headerFields
                    wire.kept.withLock {
                        $0.append((fields, reply.status, reply.response.headerFields[.wwwAuthenticate]))
                    }
                }
                return reply
            }
        }
    }

    /// The app of the story, whose resources are the gateway's.
    private func app(_ story: Story, registration token: Secret? = nil) throws -> Assent {
        try story.makeAssent(vault: token == nil ? "user" : "device") { configuration, keys in
            configuration.resources = [story.gateway: .accessToken(of: [.user, .device])]
            configuration.resourceBase = story.gateway
            guard let token else { return }
            configuration.client.id = InstallationScene.app
            configuration.registration = RegistrationConfiguration(keys: keys, initialAccessToken: token)
            configuration.registration?.deviceScopes = ["app-data"]
        }
    }

    private static let transfer = ResourceRequest.post("transfers", json: Story.transfer)

    @Test(
        "28 A transfer through the user client steps up and runs once, plain and sealed; without anybody to ask it is 10104 and runs not",
        arguments: [false, true])
    func transfer(isSealed: Bool) async throws {
        let (wire, sealed) = (Wire(path: "/transfers"), SealedWire())
        try await World.run(
            logger: CollectingLog().logger, watching: wire.watching, sealed: isSealed ? sealed : nil
        ) { story in
            let assent = try app(story)
            let early = await #expect(throws: ResourceError.self) {
                try await assent.userClient.sendAuthenticatedRequest(Self.transfer)
            }
            #expect(early?.number == 9010 && early?.domain == .fetchResource && wire.calls.isEmpty)
            try await story.signIn(assent, forcing: false)

            let unasked = await #expect(throws: ResourceError.self) {
                try await assent.userClient.sendAuthenticatedRequest(Self.transfer)
            }
            #expect(unasked?.number == 10104 && unasked?.domain == .fetchResource)
            let declined = await #expect(throws: ResourceError.self) {
                try await assent.userClient.sendAuthenticatedRequest(Self.transfer) { _ in .decline }
            }
            #expect(declined?.number == 9006 && declined?.domain == .generic)
            #expect(try await story.balance(assent) == "1000.00")

            let before = wire.calls.count
            let shown = Locked<[String]>([])
            let reply = try await assent.userClient.sendAuthenticatedRequest(Self.transfer) { approval in
                let display = approval.display.map { "\($0.label): \($0.value)" }
                if approval.step[ConfirmationCallback.self] != nil { shown.withLock { $0 += display } }
                return try story.answer(&approval)
            }
            #expect(reply.status == 201 && reply.error == nil)
            #expect(try JSONValue.parse(reply.data)["amount"] == "200.00")
            guard case .approved(transactionID: let transaction?, binding: .stated(let parts)) = reply.authorization
            else {
                Issue.record("\(reply.authorization)")
                return
            }
            #expect(!transaction.isEmpty && parts.contains(.body))
            #expect(shown.withLock { $0 } == ["Amount: 200.00 EUR", "To: Bob"])
            #expect(try await story.balance(assent) == "800.00")

            // Asked once, let through once, with one Idempotency-Key.
            let sent = Array(wire.calls.dropFirst(before))
            #expect(sent.map(\.status) == [401, 201])
            let keys = try sent.map { try #require($0.fields[.idempotencyKey]) }
            #expect(Set(keys).count == 1)
            #expect(sent.allSatisfy { $0.fields[.authorization]?.hasPrefix("Bearer ") == true })
            #expect(!isSealed || sealed.hasSealed(atLeast: 8), "\(sealed)")
            await assent.shutdown()
        }
    }

    @Test("28 A call of the installation or of nobody is told to step up nothing, whoever is signed in, and runs not")
    func others() async throws {
        let wire = Wire(path: "/transfers")
        try await World.run(
            logger: CollectingLog().logger, watching: wire.watching
        ) { story in
            let operating = try app(story)
            try await story.signIn(operating, forcing: false)
            let token = try await InstallationScene(story).initialAccessToken(operating)
            let assent = try app(story, registration: token)
            try await story.signIn(assent, forcing: false)
            try await assent.deviceClient.authenticateDevice(scopes: ["app-data"])

            let device = try await assent.deviceClient.sendRequest(Self.transfer)
            #expect(device.status == 403 && device.error?.number == 10106)
            #expect(try JSONValue.parse(device.data)["code"] == "token_kind")
            let nobody = try await assent.deviceClient.sendUnauthenticatedRequest(Self.transfer)
            #expect(nobody.status == 401 && nobody.error?.number == 10106)
            // The gateway may have asked for a nonce first.
            let judged = wire.calls.filter { $0.challenge?.contains("use_dpop_nonce") != true }
            #expect(judged.map(\.status) == [403, 401])
            for call in wire.calls { #expect(call.challenge?.contains("advices=") != true) }
            #expect(try await story.balance(assent) == "1000.00")

            // The control: the user of the same app is asked, and pays.
            let paid = try await assent.userClient.sendAuthenticatedRequest(Self.transfer) { try story.answer(&$0) }
            #expect(paid.status == 201)
            #expect(try await story.balance(assent) == "800.00")
            for app in [assent, operating] { await app.shutdown() }
        }
    }

    @Test("9 and 19 The installation presents its own token with a proof, and after its registration's end none")
    func device() async throws {
        let wire = Wire(path: "/app-info")
        try await World.run(
            logger: CollectingLog().logger, watching: wire.watching
        ) { story in
            let operating = try app(story)
            try await story.signIn(operating, forcing: false)
            let token = try await InstallationScene(story).initialAccessToken(operating)
            let assent = try app(story, registration: token)
            let early = await #expect(throws: ResourceError.self) {
                try await assent.deviceClient.sendRequest(.get("app-info"))
            }
            #expect(early?.number == 10012 && early?.domain == .fetchAnonymousResource && wire.calls.isEmpty)
            let scope = await #expect(throws: ResourceError.self) {
                try await assent.deviceClient.authenticateDevice(scopes: ["app-data", "unknown"])
            }
            #expect(scope?.number == 10001 && scope?.domain == .fetchAnonymousResource)

            try await assent.deviceClient.authenticateDevice(scopes: ["app-data"])
            #expect(try await assent.deviceClient.sendRequest(.get("app-info")).status == 200)
            #expect(try await assent.deviceClient.sendUnauthenticatedRequest(.get("app-info")).status == 401)
            let sent = wire.calls
            let presented = try #require(try await assent.tokens.device.token(rejecting: nil)).value.reveal()
            #expect(sent.filter { $0.status == 200 }.map { $0.fields[.authorization] } == ["DPoP \(presented)"])
            #expect(sent.first { $0.status == 200 }?.fields[.dpop] != nil)
            let bare = try #require(sent.last)
            #expect(bare.fields[.authorization] == nil && bare.fields[.dpop] == nil)

            // The user's token is of another kind, and is told so.
            let user = try await operating.userClient.sendAuthenticatedRequest(.get("app-info"))
            #expect(user.status == 403 && user.headerFields[.wwwAuthenticate] == nil)

            #expect(try await assent.unregister().isComplete)
            let count = wire.calls.count
            let ended = await #expect(throws: ResourceError.self) {
                try await assent.deviceClient.sendRequest(.get("app-info"))
            }
            #expect(ended?.number == 10012 && wire.calls.count == count)
            for app in [assent, operating] { await app.shutdown() }
        }
    }

    /// Leads what is for the gateway to another transport, and everything else to the story's own.
    private struct Split: HTTPTransport {
        let gateway: Origin
        let resources: any HTTPTransport
        let others: any HTTPTransport

        @concurrent func send(_ call: HTTPCall) async throws -> HTTPReply {
            try await (try call.origin == gateway ? resources : others).send(call)
        }
    }

    @Test("1 and 22 Behind other pins, and without a pin, no call reaches the gateway; with the right ones each does")
    func pinned() async throws {
        let wire = Wire(path: "/accounts")
        try await World.run(
            logger: CollectingLog().logger, watching: wire.watching
        ) { story in
            let operating = try app(story)
            try await story.signIn(operating, forcing: false)
            let token = try await InstallationScene(story).initialAccessToken(operating)
            let others = try (1...2).map { try Pin(sha256: [UInt8](repeating: $0, count: 32)) }
            var roots = TrustRoots.system
            if let file = story.world.endpoints.authorityFile { roots = .pemFile(file) }
            let mispinned = try NIOTransport(
                configuration: NIOTransportConfiguration(trustRoots: roots, pins: ["localhost": .pins(others)])
                    .withLeastLimit(.seconds(Patience.seconds)),
                clock: story.clock, logger: story.logger)
            let unpinned = try NIOTransport(
                configuration: NIOTransportConfiguration(trustRoots: roots, pins: [:]), clock: story.clock,
                logger: story.logger)
            let keys = SoftwareKeyProvider(
                unprotectedFile: URL(fileURLWithPath: "\(story.world.directory)/pinned.keys"), clock: story.clock)
            var configuration = operating.configuration
            configuration.vault = .memory
            configuration.client.id = InstallationScene.app
            configuration.registration = RegistrationConfiguration(keys: keys, initialAccessToken: token)
            configuration.registration?.deviceScopes = ["app-data"]
            // One installation, whose resources are behind the right pins, other ones, and none.
            let gateway = try Origin(story.gateway)
            let way = Locked<any HTTPTransport>(story.transport)
            let resources = Switched(way: way)
            configuration.transport = Split(gateway: gateway, resources: resources, others: story.transport)
            let assent = try Assent(configuration)
            try await story.signIn(assent, forcing: false)
            try await assent.deviceClient.authenticateDevice(scopes: ["app-data"])

            for (transport, expected) in [(mispinned, "url -1202"), (unpinned, "10101")] {
                way.withLock { $0 = wire.watching(transport) }
                for error in await refusals(assent) {
                    let told = error.map { "\($0.domain) \($0.number)" }
                    #expect(told?.hasSuffix(expected) == true, "\(told ?? "a reply")")
                }
            }
            #expect(wire.calls.isEmpty)
            way.withLock { $0 = story.transport }
            #expect(await refusals(assent) == [nil, nil, nil])
            #expect(Set(wire.calls.map(\.status)).isSuperset(of: [200, 401, 403]))
            for transport in [mispinned, unpinned] { await transport.shutdown() }
            for app in [assent, operating] { await app.shutdown() }
        }
    }

    @Test("1 Behind other pins, and without a pin, a remembered user's call does not reach the gateway either")
    func pinnedImplicit() async throws {
        let wire = Wire(path: "/accounts")
        try await World.run(
            logger: CollectingLog().logger, watching: wire.watching, editing: RememberedUserTests.configured
        ) { story in
            let first = try await RememberedUserTests.installation(story, "implicit")
            var configuration = first.configuration
            let gateway = try Origin(story.gateway)
            let way = Locked<any HTTPTransport>(story.transport)
            configuration.transport = Split(
                gateway: gateway, resources: Switched(way: way), others: story.transport)
            configuration.resourceBase = story.gateway
            await first.shutdown()
            let assent = try Assent(configuration)
            try await story.signIn(assent, forcing: false)
            let container = try await assent.device.enrol { _ in Secret("0042") }
            try await assent.userClient.implicitlyAuthenticate(container.userName, scopes: ["accounts"])

            var roots = TrustRoots.system
            if let file = story.world.endpoints.authorityFile { roots = .pemFile(file) }
            let others = try (1...2).map { try Pin(sha256: [UInt8](repeating: $0, count: 32)) }
            let mispinned = try NIOTransport(
                configuration: NIOTransportConfiguration(trustRoots: roots, pins: ["localhost": .pins(others)])
                    .withLeastLimit(.seconds(Patience.seconds)),
                clock: story.clock, logger: story.logger)
            let unpinned = try NIOTransport(
                configuration: NIOTransportConfiguration(trustRoots: roots, pins: [:]), clock: story.clock,
                logger: story.logger)
            for (transport, expected) in [(mispinned, "url -1202"), (unpinned, "fetchImplicitResource 10101")] {
                // A reply that came by this way would be seen.
                way.withLock { $0 = wire.watching(transport) }
                let refused = await #expect(throws: ResourceError.self) {
                    try await assent.userClient.sendImplicitRequest(.get("accounts"))
                }
                #expect(refused.map { "\($0.domain) \($0.number)" } == expected)
            }
            #expect(wire.calls.isEmpty)
            way.withLock { $0 = story.transport }
            // The route is a user's alone.
            #expect(try await assent.userClient.sendImplicitRequest(.get("accounts")).status == 403)
            #expect(wire.calls.last?.status == 403)
            for transport in [mispinned, unpinned] { await transport.shutdown() }
            await assent.shutdown()
        }
    }

    @Test("2 An absolute URL is called where its origin is named and pinned, and refused where one of both is missing")
    func absolute() async throws {
        try await World.run(logger: CollectingLog().logger) { story in
            let endpoints = story.world.endpoints
            let (gateway, server) = (try Origin(story.gateway), try Origin(endpoints.server))
            let url = "\(endpoints.server)/oauth2/realms/root/realms/alpha/.well-known/openid-configuration"
            var roots = TrustRoots.system
            if let file = endpoints.authorityFile { roots = .pemFile(file) }
            for (isNamed, isPinned) in [(true, true), (true, false), (false, true)] {
                var pins: [String: PinRequirement] = [gateway.authority: .pins(endpoints.pins)]
                if isPinned { pins[server.authority] = .pins(endpoints.pins) }
                let network = try NIOTransport(
                    configuration: NIOTransportConfiguration(trustRoots: roots, pins: pins)
                        .withLeastLimit(.seconds(Patience.seconds)),
                    clock: story.clock, logger: story.logger)
                let vault = "absolute-\(isNamed)-\(isPinned)"
                let assent = try story.makeAssent(vault: vault, over: network) { configuration, _ in
                    configuration.resources = [gateway.description: .nothing]
                    if isNamed { configuration.resources[server.description] = .nothing }
                    configuration.resourceBase = story.gateway
                }
                // The control: paths are called at the base.
                let base = try await assent.deviceClient.sendUnauthenticatedRequest(.get("accounts"))
                #expect(base.status == 401)
                let error = await ResourceError.thrown {
                    let reply = try await assent.deviceClient.sendUnauthenticatedRequest(.get(url))
                    #expect(reply.status == 200)
                }
                let expected: Int? = isNamed && isPinned ? nil : 10101
                #expect(error?.number == expected, "\(isNamed) \(isPinned): \(error as Any)")
                await network.shutdown()
                await assent.shutdown()
            }
        }
    }

    /// What a call of each kind is refused with; `nil` for a reply.
    private func refusals(_ assent: Assent) async -> [ResourceError?] {
        var errors: [ResourceError?] = []
        let request = ResourceRequest.get("accounts")
        for kind in ["user", "device", "nobody"] {
            do throws(ResourceError) {
                switch kind {
                case "user": _ = try await assent.userClient.sendAuthenticatedRequest(request)
                case "device": _ = try await assent.deviceClient.sendRequest(request)
                default: _ = try await assent.deviceClient.sendUnauthenticatedRequest(request)
                }
                errors.append(nil)
            } catch {
                errors.append(error)
            }
        }
        return errors
    }

    /// A transport that a test exchanges.
    private struct Switched: HTTPTransport {
        let way: Locked<any HTTPTransport>

        @concurrent func send(_ call: HTTPCall) async throws -> HTTPReply {
            try await way.withLock { $0 }.send(call)
        }
    }
}
