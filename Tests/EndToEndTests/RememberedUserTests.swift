import Assent
import AssentCore
import AssentServer
import AssentTesting
import Foundation
import HTTPTypes
import Testing

@testable import AssentCLI
@testable import AssentDemo

/// Users whom an installation remembers, by the façade alone, against the real server.
@Suite("The façade's remembered users: PIN, implicit, wrong PINs and the end")
struct RememberedUserTests {
    private static let pin = Secret("0042")

    /// The app lets remembered users in.
    static func configured(_ file: String) -> String {
        OwnDeviceTests.withLogin(file).replacing(
            "        grantTypes: [authorization_code, refresh_token, client_credentials]\n",
            with: """
                        grantTypes:
                          - authorization_code
                          - refresh_token
                          - client_credentials
                          - urn:ietf:params:oauth:grant-type:jwt-bearer
                        implicit: {scopes: [accounts]}

                """)
    }

    /// An installation that is registered, and whose sessions belong to its key.
    static func installation(_ story: Story, _ vault: String) async throws -> Assent {
        let operating = try story.makeAssent(vault: "operator")
        try await story.signIn(operating, forcing: false)
        let token = try await InstallationScene(story).initialAccessToken(operating)
        await operating.shutdown()
        return try open(story, vault, registeringBy: token)
    }

    /// The installation that these files belong to; with scopes of its own, perhaps.
    static func open(
        _ story: Story, _ vault: String, registeringBy token: Secret? = nil, deviceScopes: [String] = [],
        over connections: NIOTransport? = nil, layers: [any HTTPMiddleware] = []
    ) throws -> Assent {
        try story.makeAssent(vault: vault, over: connections) { configuration, keys in
            configuration.client.id = InstallationScene.app
            configuration.registration = RegistrationConfiguration(keys: keys, initialAccessToken: token)
            configuration.registration?.deviceScopes = deviceScopes
            configuration.dpop = .installation
            configuration.layers = layers
            let kinds: Set<CallKind> = deviceScopes.isEmpty ? [.user, .implicit] : [.user, .implicit, .device]
            configuration.resources = configuration.resources.mapValues { _ in .accessToken(of: kinds) }
            let server = configuration.server.split(separator: "/").prefix(2).joined(separator: "//")
            configuration.resources[server] = .session
            let place = URL(fileURLWithPath: "\(story.world.directory)/\(vault).device")
            configuration.deviceKeys = SoftwareKeyProvider(unprotectedFile: place)
            configuration.device.modes = [.device, .assisted]
        }
    }

    @Test("29: After a sign-out the PIN signs in, a wrong one costs a try, and nothing of it is stored")
    func pin() async throws {
        try await World.run(logger: CollectingLog().logger, editing: Self.configured) { story in
            let app = try await Self.installation(story, "remembered")
            try await story.signIn(app, forcing: false)
            let container = try await app.device.enrol { _ in Self.pin }
            _ = await app.signOut()

            let wrong = await #expect(throws: ResourceError.self) {
                try await app.logIn(container.userName, pin: Secret("9999"))
            }
            #expect(wrong?.number == 9009 && (wrong?.triesLeft ?? 0) > 0)
            let stranger = await #expect(throws: ResourceError.self) { try await app.logIn("bob", pin: Self.pin) }
            #expect(stranger?.number == 9010)

            try await app.logIn(container.userName, pin: Self.pin)
            let user = try #require(try await app.user())
            #expect(user.session?.keyThumbprint != nil)
            #expect(try await user.token().refreshToken == nil)
            #expect(try await app.tokens.session() == nil)
            #expect(try await app.tokens.storedTokens() == nil)
            #expect(try await story.balance(app) != nil)

            story.clock.advance(by: 7 * 86_400)
            let expired = await #expect(throws: ResourceError.self) {
                try await app.userClient.sendAuthenticatedRequest(.get(story.transfers))
            }
            #expect(expired?.number == 9010)
            await app.shutdown()
        }
    }

    @Test("The end of a login says whether the server was told")
    func endOfLogin() async throws {
        try await World.run(logger: CollectingLog().logger, editing: Self.configured) { story in
            let app = try await Self.installation(story, "ended")
            try await story.signIn(app, forcing: false)
            let container = try await app.device.enrol { _ in Self.pin }
            _ = await app.signOut()
            #expect(await app.endLogin(), "there is nothing to tell")
            try await app.logIn(container.userName, pin: Self.pin)
            #expect(await app.endLogin())
            let own = try Story.connections(to: story.world, clock: story.clock, logger: story.logger)
            let cut = try Self.open(story, "ended", over: own)
            try await cut.logIn(container.userName, pin: Self.pin)
            await own.shutdown()
            #expect(await !cut.endLogin(), "nothing can be told any more")
            await app.shutdown()
        }
    }

    @Test("A remembered user's token works after a sign-out, and not after the installation's end")
    func implicit() async throws {
        try await World.run(logger: CollectingLog().logger, editing: Self.configured) { story in
            let app = try await Self.installation(story, "implicit")
            try await story.signIn(app, forcing: false)
            let container = try await app.device.enrol { _ in Self.pin }
            _ = await app.signOut()
            try await app.userClient.implicitlyAuthenticate(container.userName, scopes: ["accounts"])
            #expect(try await app.tokens.implicit.token(rejecting: nil) != nil)
            let scope = await #expect(throws: ResourceError.self) {
                try await app.userClient.implicitlyAuthenticate(container.userName, scopes: ["openid"])
            }
            #expect(scope?.number == 10001)
            #expect(try await app.unregister().isComplete)
            let ended = await #expect(throws: ResourceError.self) {
                try await app.userClient.sendImplicitRequest(.get(story.transfers))
            }
            #expect(ended?.number == 9026)
            await app.shutdown()
        }
    }

    @Test("28: A remembered user's transfer is told to step up nothing, and runs not; with the PIN there is an advice")
    func transfer() async throws {
        try await World.run(logger: CollectingLog().logger, editing: Self.configured) { story in
            let app = try await Self.installation(story, "transfer")
            try await story.signIn(app, forcing: false)
            let container = try await app.device.enrol { _ in Self.pin }
            _ = await app.signOut()
            let transfer = ResourceRequest.post(story.transfers, json: Story.transfer)

            try await app.userClient.implicitlyAuthenticate(container.userName, scopes: ["accounts"])
            let refused = try await app.userClient.sendImplicitRequest(transfer)
            #expect(refused.status == 403 && refused.error?.number == 10106)
            #expect(refused.headerFields[.wwwAuthenticate] == nil)
            #expect(try JSONValue.parse(refused.data)["code"] == "token_kind")

            // The control: there is an advice for who is asked, and here is nobody to answer it.
            try await app.logIn(container.userName, pin: Self.pin)
            let asked = await #expect(throws: ResourceError.self) {
                try await app.userClient.sendAuthenticatedRequest(transfer)
            }
            #expect(asked?.number == 10104)
            #expect(try await story.balance(app) == "1000.00")
            await app.shutdown()
        }
    }

    @Test("The example of an implicit call runs as docs/resources.md shows it")
    func example() async throws {
        let shown = """
            try await assent.userClient.implicitlyAuthenticate("ana", scopes: ["profile"])
            let greeting = try await assent.userClient.sendImplicitRequest(.get("greeting"))
            """
        let page = try String(contentsOf: World.package.appending(path: "docs/resources.md"), encoding: .utf8)
        #expect(page.contains("**Implicit call:**\n\n```swift\n\(shown)\n```\n"))

        func edited(_ file: String) -> String {
            Self.configured(file).replacing("implicit: {scopes: [accounts]}", with: "implicit: {scopes: [profile]}")
        }
        try await World.run(logger: CollectingLog().logger, editing: edited) { story in
            let first = try await Self.installation(story, "example")
            try await story.signIn(first, forcing: false)
            _ = try await first.device.enrol { _ in Self.pin }
            _ = await first.signOut()
            await first.shutdown()
            var configuration = first.configuration
            configuration.resourceBase = story.gateway
            let assent = try Assent(configuration)

            try await assent.userClient.implicitlyAuthenticate("ana", scopes: ["profile"])
            let greeting = try await assent.userClient.sendImplicitRequest(.get("greeting"))

            #expect(greeting.status == 200 && !greeting.data.isEmpty)
            let account = try await assent.userClient.sendImplicitRequest(.get("accounts"))
            #expect(account.status == 403, "the user's alone")
            await assent.shutdown()
        }
    }

    @Test("A container that the user has revoked is removed here after the server's signed status: 9003")
    func revoked() async throws {
        try await World.run(logger: CollectingLog().logger, editing: Self.configured) { story in
            let app = try await Self.installation(story, "revoked")
            try await story.signIn(app, forcing: false)
            let container = try await app.device.enrol { _ in Self.pin }
            let reply = try await app.send(
                .post(
                    "\(story.signing(app))/containers/\(container.id)", json: ["action": "revoke"],
                    headers: [.requestedWith: "test"]))
            #expect(reply.status == 200)
            let gone = await #expect(throws: ResourceError.self) {
                try await app.logIn(container.userName, pin: Self.pin)
            }
            #expect(gone?.number == 9003)
            #expect(try await app.device.containers().isEmpty)
            await app.shutdown()
        }
    }

    @Test("A user is removed here whether the server can be told or not, with all that is in memory: 10003 where not")
    func deregistered() async throws {
        try await World.run(logger: CollectingLog().logger, editing: Self.configured) { story in
            let app = try await Self.installation(story, "deregistered")
            func enrol() async throws -> String {
                try await story.signIn(app, forcing: false)
                let container = try await app.device.enrol { _ in Self.pin }
                _ = await app.signOut()
                return container.userName
            }
            func isUnknown(_ user: String, to app: Assent) async -> Bool {
                let error = await #expect(throws: ResourceError.self) { try await app.deregister(user) }
                return error?.number == 9010
            }
            let user = try await enrol()
            try await app.logIn(user, pin: Self.pin)
            try await app.userClient.implicitlyAuthenticate(user, scopes: ["accounts"])
            #expect(await isUnknown("bob", to: app))
            #expect(try await app.user() != nil)

            #expect(try await app.deregister(user) == nil)
            #expect(await isUnknown(user, to: app))
            #expect(try await app.device.containers().isEmpty)
            #expect(try await app.user() == nil)
            let ended = await #expect(throws: ResourceError.self) {
                try await app.userClient.sendImplicitRequest(.get(story.transfers))
            }
            #expect(ended?.number == 9026)
            #expect(try await app.registration?.current() != nil)

            // No host is pinned here, so that nothing leaves.
            let again = try await enrol()
            let nowhere = try NIOTransport(configuration: NIOTransportConfiguration(trustRoots: .system, pins: [:]))
            let offline = try Self.open(story, "deregistered", over: nowhere)
            let untold = try await offline.deregister(again)
            #expect(untold?.number == 10003 && untold?.domain == .generic)
            #expect(await isUnknown(again, to: offline))
            #expect(try await offline.device.containers().isEmpty)
            let login = await #expect(throws: ResourceError.self) { try await offline.logIn(again, pin: Self.pin) }
            #expect(login?.number == 9010)
            #expect(try await offline.registration?.current() != nil)
            await offline.shutdown()
            await nowhere.shutdown()

            try await app.device.signing.sendQueued()
            await app.shutdown()
        }
    }

    @Test("A removal that is cancelled has ended what is in memory as well, and what was destroyed opens nothing")
    func deregistrationCancelled() async throws {
        try await World.run(logger: CollectingLog().logger, editing: Self.configured) { story in
            let app = try await Self.installation(story, "cancelled")
            try await story.signIn(app, forcing: false)
            let user = try await app.device.enrol { _ in Self.pin }.userName
            _ = await app.signOut()
            try await app.logIn(user, pin: Self.pin)
            try await app.userClient.implicitlyAuthenticate(user, scopes: ["accounts"])

            let removal = Task {
                withUnsafeCurrentTask { $0?.cancel() }
                return try await app.deregister(user)
            }
            await #expect(throws: CancellationError.self) { try await removal.value }
            #expect(try await app.user() == nil)
            let ended = await #expect(throws: ResourceError.self) {
                try await app.userClient.sendImplicitRequest(.get(story.transfers))
            }
            #expect(ended?.number == 9026)
            let login = await #expect(throws: ResourceError.self) { try await app.logIn(user, pin: Self.pin) }
            #expect(login?.number == 9010)
            await app.shutdown()
        }
    }

    @Test("What nobody has signed wipes nothing: only the container's signed status does")
    func unsigned() async throws {
        try await World.run(logger: CollectingLog().logger, editing: Self.configured) { story in
            let first = try await Self.installation(story, "unsigned")
            try await story.signIn(first, forcing: false)
            let container = try await first.device.enrol { _ in Self.pin }
            let user = container.userName
            _ = await first.signOut()
            await first.shutdown()

            let reason = Locked<String?>(nil)
            let app = try Self.open(story, "unsigned", layers: [UnsignedRefusals(reason: reason)])
            for said in ["container_ended", "shredded", "expired", "locked"] {
                reason.withLock { $0 = said }
                let byPIN = await #expect(throws: ResourceError.self) { try await app.logIn(user, pin: Self.pin) }
                #expect(byPIN?.number == (said == "locked" ? 9009 : 9010), "\(said)")
                let implicit = await #expect(throws: ResourceError.self) {
                    try await app.userClient.implicitlyAuthenticate(user, scopes: ["accounts"])
                }
                #expect(implicit?.number == 9026, "\(said)")
                #expect(try await app.device.containers().map(\.id) == [container.id])
                #expect(try await app.registration?.current() != nil)
            }
            reason.withLock { $0 = nil }
            try await app.userClient.implicitlyAuthenticate(user, scopes: ["accounts"])
            try await app.logIn(user, pin: Self.pin)
            #expect(try await story.balance(app) != nil)
            await app.shutdown()
        }
    }

    @Test("A clock that is ten years wrong lets nobody in and wipes nothing: set right, both logins work as before")
    func tenYears() async throws {
        try await World.run(logger: CollectingLog().logger, editing: Self.configured) { story in
            let first = try await Self.installation(story, "years")
            try await story.signIn(first, forcing: false)
            let container = try await first.device.enrol { _ in Self.pin }
            let user = container.userName
            _ = await first.signOut()
            await first.shutdown()

            for years in [10.0, -10] {
                // At such a time no certificate is valid.
                let clock = DemoClock(story.clock.now.addingTimeInterval(years * 365 * 86_400))
                let connections = try Story.connections(to: story.world, clock: clock, logger: story.logger)
                var configuration = first.configuration
                configuration.clock = clock
                configuration.transport = connections
                let wrong = try Assent(configuration)
                let byPIN = await #expect(throws: ResourceError.self) { try await wrong.logIn(user, pin: Self.pin) }
                #expect(byPIN?.domain == .generic && byPIN?.number == 9001, "\(years)")
                let implicit = await #expect(throws: ResourceError.self) {
                    try await wrong.userClient.implicitlyAuthenticate(user, scopes: ["accounts"])
                }
                #expect(implicit?.domain == .url && implicit?.number == -1202, "\(years)")
                #expect(try await wrong.user() == nil)
                #expect(try await wrong.device.containers().map(\.id) == [container.id])
                #expect(try await wrong.registration?.current() != nil)
                await wrong.shutdown()
                await connections.shutdown()
            }

            let right = try Self.open(story, "years")
            #expect(try await right.device.containers().map(\.id) == [container.id])
            try await right.userClient.implicitlyAuthenticate(user, scopes: ["accounts"])
            try await right.logIn(user, pin: Self.pin)
            #expect(try await story.balance(right) != nil)
            await right.shutdown()
        }
    }
}

/// Refuses token requests itself, for a reason that nobody has signed.
private struct UnsignedRefusals: HTTPMiddleware {
    let reason: Locked<String?>

    func intercept(_ call: HTTPCall, next: HTTPPipeline.Next) async throws -> HTTPReply {
        guard call.request.path?.hasSuffix("/access_token") == true, let reason = reason.withLock({ $0 }) else {
            return try await next.send(call)
        }
        return .json(400, ["error": "invalid_grant", "assent_error": .string(reason)])
    }
}
