import Assent
import AssentCore
import AssentServer
import Foundation
import HTTPTypes
import Testing

@testable import AssentCLI
@testable import AssentDemo

/// What an installation sends, by the façade alone, to the real server.
@Suite("How many requests a registration, a login and a call of a resource take")
struct RequestCountTests {
    private static let pin = Secret("0042")

    /// What a process reads of the server once a day, before its first request to it.
    private static let metadata = "openid-configuration"

    /// What `body` sends: the last components of the paths, in their order.
    private func sent(_ wire: SealedWire, _ body: () async throws -> Void) async throws -> [String] {
        wire.clear()
        try await body()
        return wire.sent.map { request in
            URLText.withoutQuery(request.path ?? "").split(separator: "/").last.map(String.init) ?? ""
        }
    }

    /// A new process of the installation.
    private func process(_ story: Story, token: Secret? = nil) throws -> Assent {
        try RememberedUserTests.open(story, "counted", registeringBy: token, deviceScopes: ["app-data"])
    }

    @Test("Registration takes 3 at most; a PIN login 3, and 5 in a new process; a token 1, and 2; and a call 1")
    func requests() async throws {
        let wire = SealedWire()
        try await World.run(
            logger: CollectingLog().logger, watching: wire.watching, editing: RequestKindsTests.remembering
        ) { story in
            let operating = try story.makeAssent(vault: "operator")
            try await story.signIn(operating, forcing: false)
            let token = try await InstallationScene(story).initialAccessToken(operating)
            await operating.shutdown()

            let app = try process(story, token: token)
            let registering = try await sent(wire) { _ = try await app.registration?.register() }
            #expect(registering.first == Self.metadata && registering.count <= 3, "\(registering)")
            #expect(registering.last == "register" && Set(registering).count == 2, "\(registering)")
            try await story.signIn(app, forcing: false)
            let user = try await app.device.enrol { _ in Self.pin }.userName
            _ = await app.signOut()
            await app.shutdown()

            try await countDevice(story, wire)
            try await countPIN(story, wire, user)
            try await countImplicit(story, wire, user)
        }
    }

    private func countDevice(_ story: Story, _ wire: SealedWire) async throws {
        let app = try process(story)
        let cold = try await sent(wire) { try await app.deviceClient.authenticateDevice(scopes: ["app-data"]) }
        #expect(cold.first == Self.metadata, "\(cold)")
        #expect((1...2).contains(cold.dropFirst().count), "\(cold)")
        #expect(cold.dropFirst().allSatisfy { $0 == "access_token" }, "\(cold)")
        let old = try #require(try await app.tokens.device.token(rejecting: nil))
        let renewed = try await sent(wire) { _ = try await app.tokens.device.token(rejecting: old.value) }
        #expect(renewed == ["access_token"])
        try await countCalls(wire, "app-info") {
            try await app.deviceClient.sendRequest(.get(story.gateway + "/app-info")).status
        }
        await app.shutdown()
    }

    private func countPIN(_ story: Story, _ wire: SealedWire, _ user: String) async throws {
        let app = try process(story)
        let cold = try await sent(wire) { try await app.logIn(user, pin: Self.pin) }
        #expect(
            cold.filter { $0 != Self.metadata } == [
                "configuration", "unlock", "confirm", "access_token", "access_token",
            ])
        #expect(cold.count { $0 == Self.metadata } == 1, "\(cold)")
        _ = await app.signOut()
        let warm = try await sent(wire) { try await app.logIn(user, pin: Self.pin) }
        #expect(warm == ["unlock", "confirm", "access_token"])
        try await countCalls(wire, "accounts") {
            try await app.userClient.sendAuthenticatedRequest(.get(story.gateway + "/accounts")).status
        }
        await app.shutdown()
    }

    private func countImplicit(_ story: Story, _ wire: SealedWire, _ user: String) async throws {
        let app = try process(story)
        let cold = try await sent(wire) {
            try await app.userClient.implicitlyAuthenticate(user, scopes: ["profile"])
        }
        #expect(cold == [Self.metadata, "access_token", "access_token"])
        let old = try #require(try await app.tokens.implicit.token(rejecting: nil))
        let renewed = try await sent(wire) { _ = try await app.tokens.implicit.token(rejecting: old.value) }
        #expect(renewed == ["access_token"])
        try await countCalls(wire, "greeting") {
            try await app.userClient.sendImplicitRequest(.get(story.gateway + "/greeting")).status
        }
        await app.shutdown()
    }

    /// The first call of a process may be told a nonce; every later one is one request.
    private func countCalls(_ wire: SealedWire, _ name: String, _ call: () async throws -> Int) async throws {
        #expect(try await call() == 200)
        for _ in 0..<2 {
            let sent = try await sent(wire) {
                let status = try await call()
                #expect(status == 200)
            }
            #expect(sent == [name])
        }
    }
}
