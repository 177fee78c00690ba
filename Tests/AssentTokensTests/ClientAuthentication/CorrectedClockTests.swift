import AssentCore
import AssentTesting
import AssentTokens
import Foundation
import HTTPTypes
import Testing

@Suite("An installation whose clock is wrong") struct CorrectedClockTests {
    /// A server whose clock is right, which says what time it is in each answer of its token and revocation endpoints.
    private struct World {
        let clock = ManualClock()
        let ring = KeyRing()
        let provider: FakeProvider
        let door: RegistrationDoor
        /// Whether the server refuses the client, whatever it sends.
        let isRefusing = Locked(false)
        /// Seconds by which the field `Date` is wrong.
        let error = Locked<Int64>(0)

        init(tokenType: JSONValue = "Bearer") throws {
            provider = try FakeProvider()
            door = RegistrationDoor(clock: clock)
            serve(tokenType)
        }

        private func serve(_ tokenType: JSONValue) {
            provider.registers(by: door)
            let registering = provider.behaviour.withLock { $0.other }
            provider.change { state in
                state.tokenType = tokenType
                state.tokenReply = { form in try await answer(form) }
                state.other = { exchange in
                    guard exchange.request.url?.hasSuffix("/token/revoke") == true else {
                        return try await registering?(exchange) ?? .json(404, [:])
                    }
                    return door.accepts(exchange.form) ? HTTPReply(HTTPResponse(status: .ok)) : refusal
                }
            }
        }

        private func answer(_ form: FormItems) async throws -> HTTPReply {
            guard !isRefusing.withLock({ $0 }), door.accepts(form) else { return refusal }
            let (audience, now) = (form["client_id"].map(JSONValue.string), clock.epochSeconds)
            provider.change { state in
                state.claims = { claims in
                    claims["aud"] = audience
                    claims["iat"] = JSONValue.integer(now)
                    claims["exp"] = JSONValue.integer(now + 600)
                }
            }
            return .json(200, try await provider.grant(form))
        }

        private var refusal: HTTPReply {
            let format = DateFormatter()
            format.locale = Locale(identifier: "en_US_POSIX")
            format.timeZone = .gmt
            format.dateFormat = "EEE, dd MMM yyyy HH:mm:ss 'GMT'"
            let seconds = TimeInterval(clock.epochSeconds + error.withLock { $0 })
            let date = format.string(from: Date(timeIntervalSince1970: seconds))
            return .json(401, ["error": "invalid_client"], headers: [.date: date])
        }

        /// A process of the installation, which has registered while its clock was right.
        func registered(_ configure: (inout TokenConfiguration) -> Void = { _ in }) async throws -> TokenManager {
            let manager = try provider.installation(ring, configure: configure)
            _ = try await manager.registration?.register()
            return manager
        }

        func advance(by seconds: TimeInterval) {
            clock.advance(by: seconds)
            provider.clock.advance(by: seconds)
        }

        var grants: [String?] { provider.sent("/access_token").map { $0.form["grant_type"] } }
    }

    @Test(
        "Its own token is asked for once more by the refusal's time, and the next one with that at once",
        arguments: [600.0, -600])
    func device(ahead: TimeInterval) async throws {
        let world = try World(tokenType: "DPoP")
        let manager = try await world.registered { $0.registration?.deviceScopes = ["app"] }
        world.provider.clock.advance(by: -ahead)
        try await manager.device.authenticate(scopes: ["app"])
        #expect(world.grants == ["client_credentials", "client_credentials"])
        let token = try #require(try await manager.device.token(rejecting: nil))
        _ = try await manager.device.token(rejecting: token.value)
        #expect(world.grants.count == 3)
    }

    @Test(
        "Its user signs in, and the ID token is judged by the same time; so it renews and signs out",
        arguments: [600.0, -600])
    func user(ahead: TimeInterval) async throws {
        let world = try World()
        let manager = try await world.registered()
        world.provider.clock.advance(by: -ahead)
        try await manager.install(Session(token: Secret("SESS")))
        #expect(try await manager.tokens().idToken?.subject == "ana")
        world.advance(by: 601)
        #expect(try await manager.tokens().accessToken == Secret("access-2"))
        #expect(world.grants == ["authorization_code", "authorization_code", "refresh_token"])

        // A process that has not heard of the time yet.
        let other = try world.provider.installation(world.ring)
        #expect(await other.signOut().isComplete)
        let revoked = world.provider.sent("/token/revoke").map { $0.form["token_type_hint"] }
        #expect(revoked == ["refresh_token", "refresh_token", "access_token"])
    }

    @Test("A time that has not helped is not kept, and without one that differs nothing is sent again")
    func unhelpful() async throws {
        let world = try World(tokenType: "DPoP")
        let manager = try await world.registered { $0.registration?.deviceScopes = ["app"] }
        try await manager.device.authenticate(scopes: ["app"])
        let token = try #require(try await manager.device.token(rejecting: nil))
        world.isRefusing.withLock { $0 = true }
        // What differs by more than a day is not the time either: someone who writes it wants an assertion for then.
        for (error, count) in [(Int64(3), 2), (3600, 4), (86_401, 5), (-86_401, 6)] {
            world.error.withLock { $0 = error }
            let refused = await #expect(throws: TokenError.self) {
                try await manager.device.token(rejecting: token.value)
            }
            #expect(refused?.oauthError == "invalid_client")
            #expect(world.grants.count == count)
        }
        world.isRefusing.withLock { $0 = false }
        _ = try await manager.device.token(rejecting: token.value)
        #expect(world.grants.count == 7)
    }

    @Test("A time that has not helped gives way to the last one that has, and not to that of the machine")
    func proven() async throws {
        let world = try World(tokenType: "DPoP")
        let manager = try await world.registered { $0.registration?.deviceScopes = ["app"] }
        world.provider.clock.advance(by: -600)
        try await manager.device.authenticate(scopes: ["app"])
        let token = try #require(try await manager.device.token(rejecting: nil))
        world.isRefusing.withLock { $0 = true }
        world.error.withLock { $0 = 3600 }
        await #expect(throws: TokenError.self) { try await manager.device.token(rejecting: token.value) }
        #expect(world.grants.count == 4)
        world.isRefusing.withLock { $0 = false }
        _ = try await manager.device.token(rejecting: token.value)
        #expect(world.grants.count == 5)
    }

    @Test(
        "A time is not kept when nobody has answered to what was signed by it, also in a login",
        arguments: [false, true])
    func unanswered(isLogin: Bool) async throws {
        let lost = try await tried(isLogin) { throw HTTPTransportError(.connectFailed, "A test says so.") }
        #expect(lost?.code == .transport)
    }

    @Test(
        "A time is not kept when a busy server or a proxy answers to what was signed by it, also in a login",
        arguments: [429, 503], [false, true])
    func busy(status: Int, isLogin: Bool) async throws {
        let busy = try await tried(isLogin) { .json(status, [:]) }
        #expect(busy != nil)
    }

    /// Corrects a clock in vain: what is signed by the corrected time is answered by `second`. The next request is
    /// signed by the time from before, and gets a token at once.
    ///
    /// - Returns: the first request's error.
    /// - Throws: what the next request throws.
    private func tried(
        _ isLogin: Bool, _ second: @escaping @Sendable () throws -> HTTPReply,
        at location: SourceLocation = #_sourceLocation
    ) async throws -> TokenError? {
        let world = try World(tokenType: "DPoP")
        let manager = try await world.registered { $0.registration?.deviceScopes = ["app"] }
        world.error.withLock { $0 = 3600 }
        let usual = world.provider.behaviour.withLock { $0.tokenReply }
        let asked = Locked(0)
        world.provider.change { state in
            state.tokenReply = { form in
                let number = asked.withLock { count in
                    count += 1
                    return count
                }
                if number == 2 { return try second() }
                world.isRefusing.withLock { $0 = number == 1 }
                return try await usual?(form)
            }
        }
        let error = await #expect(throws: TokenError.self, sourceLocation: location) {
            if isLogin {
                try await manager.implicit.authenticate(user: "u", scopes: []) { _ in Secret("login") }
            } else {
                try await manager.device.authenticate(scopes: ["app"])
            }
        }
        try await manager.device.authenticate(scopes: ["app"])
        #expect(world.grants.count == 3, sourceLocation: location)
        return error
    }

    @Test("A time that two requests have tried at once in vain is not kept, whichever of them hears it first")
    func togetherInVain() async throws {
        let world = try World(tokenType: "DPoP")
        let manager = try await world.registered { $0.registration?.deviceScopes = ["app"] }
        world.error.withLock { $0 = 3600 }
        world.isRefusing.withLock { $0 = true }
        let usual = world.provider.behaviour.withLock { $0.tokenReply }
        let (deviceTries, deviceTried) = AsyncStream.makeStream(of: Void.self)
        let (loginTries, loginTried) = AsyncStream.makeStream(of: Void.self)
        let device = Locked<Task<Void, any Error>?>(nil)
        let asked = Locked((device: 0, login: 0))
        world.provider.change { state in
            state.tokenReply = { form in
                let isDevice = form["grant_type"] == "client_credentials"
                let number = asked.withLock { count in
                    if isDevice { count.device += 1 } else { count.login += 1 }
                    return isDevice ? count.device : count.login
                }
                switch (isDevice, number) {
                case (false, 1):
                    // The login's first refusal comes when the device has tried the time, and has no answer yet.
                    let task = Task { try await manager.device.authenticate(scopes: ["app"]) }
                    device.withLock { $0 = task }
                    for await _ in deviceTries { break }
                case (true, 2):
                    deviceTried.finish()
                    for await _ in loginTries { break }
                case (false, 2):
                    loginTried.finish()
                    let task = device.withLock { $0 }
                    _ = await task?.result
                default: break
                }
                return try await usual?(form)
            }
        }
        await #expect(throws: TokenError.self) {
            try await manager.implicit.authenticate(user: "u", scopes: []) { _ in Secret("login") }
        }
        #expect(asked.withLock { $0.device } == 2)
        #expect(asked.withLock { $0.login } == 2)
        world.isRefusing.withLock { $0 = false }
        try await manager.device.authenticate(scopes: ["app"])
        #expect(asked.withLock { $0.device } == 3)
    }

    @Test("Of two requests under way at once each is sent once more, also that one whose reply says nothing new")
    func together() async throws {
        let world = try World(tokenType: "DPoP")
        let manager = try await world.registered { $0.registration?.deviceScopes = ["app"] }
        world.provider.clock.advance(by: -600)
        let usual = world.provider.behaviour.withLock { $0.tokenReply }
        let isFirst = Locked(true)
        world.provider.change { state in
            state.tokenReply = { form in
                let reply = try await usual?(form)
                let isLogin = isFirst.withLock { first in
                    defer { first = false }
                    return first
                }
                // While the login's refusal is on its way, the other request learns the time.
                if isLogin { try await manager.device.authenticate(scopes: ["app"]) }
                return reply
            }
        }
        try await manager.implicit.authenticate(user: "u", scopes: []) { _ in Secret("login") }
        let login = "urn:ietf:params:oauth:grant-type:jwt-bearer"
        #expect(world.grants == [login, "client_credentials", "client_credentials", login])
    }
}
