import AssentCore
import AssentJOSE
import AssentTesting
import AssentTokens
import AssentVault
import Foundation
import HTTPTypes
import Testing

@Suite("A registration that comes to nothing") struct RefusedRegistrationTests {
    /// The process ends: nothing of what follows happens.
    private struct Crash: Error {}

    private let clock = ManualClock()
    private let ring = KeyRing()
    private let provider: FakeProvider
    private let door: RegistrationDoor

    init() throws {
        (provider, door) = try FakeProvider.registering(clock: clock)
    }

    private func registration(token: String? = nil) throws -> AppRegistration {
        try #require(
            try provider.installation(ring) {
                $0.registration = RegistrationConfiguration(keys: ring, initialAccessToken: token.map { Secret($0) })
            }.registration)
    }

    private func refused(_ reply: HTTPReply, token: String? = nil) async throws -> TokenError? {
        door.change { $0.refusal = reply }
        return await #expect(throws: TokenError.self) { try await registration(token: token).register() }
    }

    // MARK: Nobody knows

    @Test(
        "A lost reply is not repeated by itself; the next try has another key, and the first is destroyed",
        arguments: [
            HTTPTransportError(.connectionClosed, "The connection ended.", mayHaveHadEffect: true),
            HTTPTransportError(.timedOut, "It took too long.", mayHaveHadEffect: true),
            HTTPTransportError(.bodyTooLarge, "The reply is too large."),
        ])
    func lostReply(lost: HTTPTransportError) async throws {
        door.change { $0.registeredHook = { throw lost } }
        let registration = try registration()
        let error = await #expect(throws: TokenError.self) { try await registration.register() }
        #expect(error?.code == .registrationUnknown && error?.isTransient == false)
        #expect(error?.transportError == lost && error?.suggestion?.contains("Try again") == true)
        #expect(provider.registrations.count == 1 && door.registered == 1)
        #expect(try await registration.current() == nil)
        let first = try #require(door.state.withLock { $0.clients["bank-app~1"]?.keys.keys.first?.thumbprint })

        door.change { $0.registeredHook = {} }
        let instance = try await registration.register()
        #expect(instance.clientID == "bank-app~2" && instance.keyThumbprint != first)
        #expect(ring.made == 2 && ring.names.count == 1)
    }

    @Test("A crash between the request and its reply: the next process has another key, and leaves none behind")
    func crash() async throws {
        door.change { $0.registeredHook = { throw Crash() } }
        await #expect(throws: Crash.self) { try await registration().register() }
        door.change { $0.registeredHook = {} }
        #expect(try await registration().register().clientID == "bank-app~2")
        #expect(ring.made == 2 && ring.names.count == 1)
    }

    @Test("A crash between the key and the request: the next process takes the key that was made")
    func crashBefore() async throws {
        let good = try #require(provider.behaviour.withLock { $0.other })
        provider.change {
            $0.other = { _ in throw HTTPTransportError(.connectFailed, "The connection was refused.") }
        }
        let error = await #expect(throws: TokenError.self) { try await registration().register() }
        #expect(error?.code == .transport && error?.isTransient == true && ring.made == 1)
        provider.change { $0.other = good }
        #expect(try await registration().register().clientID == "bank-app~1")
        #expect(ring.made == 1)
    }

    @Test("A crash before the key is made: its name is noted, and the next process makes it")
    func crashBeforeKey() async throws {
        ring.change { $0.failure = KeyProviderError(.unavailable, "It is not there.", suggestion: "Insert it.") }
        let error = await #expect(throws: TokenError.self) { try await registration().register() }
        #expect(error?.code == .clientKeyUnavailable && error?.suggestion == "Insert it.")
        #expect(provider.registrations.isEmpty)
        let noted = await provider.store.names()
        #expect(noted.count == 1)
        ring.change { $0.failure = nil }
        #expect(try await registration().register().clientID == "bank-app~1")
        #expect(await provider.store.names() == noted && ring.names.count == 1)
    }

    @Test("A server that failed, and a proof that was refused, may mean a client: the next try has another key")
    func uncertain() async throws {
        let replies: [HTTPReply] = [
            .json(503, ["error": "temporarily_unavailable"]), .json(500, [:]), .json(408, [:]),
            .json(400, ["error": "invalid_dpop_proof"]), .json(201, "no object"),
        ]
        for (index, reply) in replies.enumerated() {
            let error = try await refused(reply)
            #expect(error?.code == .registrationUnknown && error?.isTransient == false, "\(reply.status)")
            #expect(ring.made == index + 1 && ring.names.count == 1)
        }
        door.change { $0.refusal = nil }
        #expect(try await registration().register().clientID == "bank-app~1" && ring.names.count == 1)
    }

    @Test("Whoever is cancelled stops waiting; the registration goes on, and is there for the next")
    func cancelled() async throws {
        let (started, goOn) = (Gate(), Gate())
        door.change {
            $0.registeredHook = {
                started.open()
                await goOn.pass()
            }
        }
        let registration = try registration()
        let task = Task { try await registration.register() }
        await started.pass()
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        goOn.open()
        #expect(try await registration.register().clientID == "bank-app~1")
        #expect(door.registered == 1 && ring.made == 1)
    }

    // MARK: Refused

    @Test("Too often: the error says when to try again, and the next try has the same key")
    func tooOften() async throws {
        let error = try await refused(
            .json(429, ["error": "temporarily_unavailable"], headers: [.retryAfter: "30"]))
        #expect(error?.code == .registrationRefused && error?.isTransient == true)
        #expect(error?.suggestion == "Try again in 30 seconds.")
        for bad in ["-1", "0", "86401", "soon", "99999999999999999999"] {
            let error = try await refused(.json(429, [:], headers: [.retryAfter: bad]))
            #expect(error?.suggestion == "Try again later." && error?.isTransient == true)
        }
        door.change { $0.refusal = nil }
        #expect(try await registration().register().clientID == "bank-app~1" && ring.made == 1)
    }

    @Test("An initial access token that is refused, and one that is missing, are told apart")
    func initialAccessToken() async throws {
        door.change { $0.initialToken = "good" }
        let wrong = await #expect(throws: TokenError.self) { try await registration(token: "bad").register() }
        #expect(wrong?.code == .registrationRefused && wrong?.oauthError == "invalid_token" && wrong?.status == 401)
        #expect(wrong?.detail.contains("used up") == true && wrong?.isTransient == false)
        let none = await #expect(throws: TokenError.self) { try await registration().register() }
        #expect(none?.code == .registrationRefused && none?.suggestion?.contains("initialAccessToken") == true)
        // The first may have been a second copy, so its key is not registered again; the second used no token.
        #expect(door.registered == 0 && ring.made == 2 && ring.names.count == 1)
        #expect(try await registration(token: "good").register().clientID == "bank-app~1" && ring.made == 2)
    }

    @Test(
        "A request that a proxy sends twice: what refuses the second copy is told, and the first one's key is not used",
        arguments: [
            (401, "invalid_token", "another one", 2), (401, "", "another one", 2),
            (403, "access_denied", "allow more", 2), (429, "temporarily_unavailable", "later", 1),
            (400, "invalid_client_metadata", "scopes", 1),
        ])
    func doubled(status: Int, code: String, advice: String, keys: Int) async throws {
        let good = try #require(provider.behaviour.withLock { $0.other })
        door.change { $0.initialToken = "good" }
        let body: JSONValue = code.isEmpty ? [:] : ["error": .string(code)]
        provider.change {
            $0.other = { exchange in
                _ = try await good(exchange)
                return .json(status, body)
            }
        }
        let error = await #expect(throws: TokenError.self) { try await registration(token: "good").register() }
        #expect(error?.code == .registrationRefused && error?.status == status)
        #expect(error?.oauthError == body["error"]?.string && error?.suggestion?.contains(advice) == true)
        #expect(door.registered == 1 && provider.registrations.count == 1)

        provider.change { $0.other = good }
        #expect(try await registration(token: "good").register().clientID == "bank-app~2")
        #expect(ring.made == keys && ring.names.count == 1)
    }

    @Test(
        "Each refusal says what to do, and what the server says of it, where that can be shown",
        arguments: [
            (400, "invalid_redirect_uri", "redirect URI"), (400, "invalid_client_metadata", "scopes"),
            (400, "invalid_software_statement", "softwareStatement"),
            (400, "unapproved_software_statement", "softwareStatement"), (403, "access_denied", "allow more"),
            (413, "invalid_request", "Check the app"), (302, "", "Check the app"),
        ])
    func refusals(status: Int, code: String, advice: String) async throws {
        let body: JSONValue = ["error": .string(code), "error_description": "scope: more than the app has"]
        let error = try await refused(.json(status, body))
        #expect(error?.code == .registrationRefused && error?.isTransient == false && error?.status == status)
        #expect(error?.suggestion?.contains(advice) == true)
        #expect(error?.detail.hasSuffix("It says: scope: more than the app has") == true)
        let evil = try await refused(.json(status, ["error": .string(code), "error_description": "a\u{1B}[2Kb"]))
        #expect(evil?.detail.contains("It says") == false)
        // With 403 each may have been the second copy of a request.
        #expect(try await registration().current() == nil && ring.made == (status == 403 ? 2 : 1))
    }

    @Test("A server that registers nobody, or cannot be asked, leaves no key and no note")
    func noEndpoint() async throws {
        provider.change { $0.discovery["registration_endpoint"] = nil }
        let error = await #expect(throws: TokenError.self) { try await registration().register() }
        #expect(error?.code == .unusableEndpoint && error?.detail.contains("registration_endpoint") == true)
        provider.change { $0.discoveryReply = { throw HTTPTransportError(.connectFailed, "It was refused.") } }
        await #expect(throws: TokenError.like(.transport)) { try await registration().register() }
        #expect(ring.made == 0)
        #expect(await provider.store.names().isEmpty)
    }

    // MARK: Answers

    @Test("What an answer says beside the client is left out where it cannot be shown or is out of bounds")
    func odd() async throws {
        door.change {
            $0.spoil = { answer in
                answer["client_id_issued_at"] = .integer(Int64.max)
                answer["client_name"] = "Bank\u{9B}2J"
                answer["scope"] = "openid acc\u{202E}ounts"
            }
        }
        let instance = try await registration().register()
        #expect(instance.registeredAt == nil && instance.clientName == nil && instance.scopes.isEmpty)
        #expect(try await registration().current() == instance)
    }

    @Test("An answer that is not about this installation is not used")
    func answers() async throws {
        let foreign = try JWK(publicKeyInfo: SoftwareSigningKey.generate(.es256).publicKeyInfo)
        let spoilers: [(@Sendable (inout JSONObject) -> Void, TokenError.Code)] = [
            ({ $0["client_id"] = nil }, .malformedReply), ({ $0["client_id"] = "" }, .malformedReply),
            ({ $0["client_id"] = "a b" }, .malformedReply),
            ({ $0["client_id"] = .string(String(repeating: "c", count: 513)) }, .malformedReply),
            ({ $0["registration_access_token"] = nil }, .malformedReply),
            ({ $0["registration_access_token"] = "a\r\nX: b" }, .malformedReply),
            ({ $0["registration_client_uri"] = nil }, .malformedReply),
            ({ $0["registration_client_uri"] = "https://evil.example/register/1" }, .unusableEndpoint),
            ({ $0["registration_client_uri"] = "http://am.example.com/register/1" }, .unusableEndpoint),
            ({ $0["token_endpoint_auth_method"] = "client_secret_basic" }, .malformedReply),
            ({ $0["token_endpoint_auth_method"] = nil }, .malformedReply),
            ({ $0["jwks"] = JWKSet([foreign]).json }, .malformedReply), ({ $0["jwks"] = nil }, .malformedReply),
            ({ $0["redirect_uris"] = ["https://evil.example/"] }, .malformedReply),
        ]
        for (spoil, code) in spoilers {
            door.change { $0.spoil = spoil }
            let error = await #expect(throws: TokenError.self) { try await registration().register() }
            #expect(error?.code == code)
            #expect(try await registration().current() == nil)
        }
        door.change { $0.spoil = { $0["client_secret"] = "never" } }
        _ = try await registration().register()
        // Each try had a key of its own, and only the last is left.
        #expect(ring.made == spoilers.count + 1 && ring.names.count == 1)
    }

    @Test("A configuration with a key of its own as well is refused before anything is sent")
    func both() async throws {
        let manager = try provider.installation(ring) {
            $0.clientAuthentication = .privateKeyJWT(keys: ring, named: "bank")
        }
        try await manager.install(Session(token: Secret("SESS")))
        await #expect(throws: TokenError.like(.invalidConfiguration)) { try await manager.tokens() }
        #expect(provider.registrations.isEmpty && provider.sent("/authorize").isEmpty)
    }

    @Test(
        "An algorithm that no assertion may have is refused before a key is made",
        arguments: [SignatureAlgorithm.es384, .rs256])
    func algorithm(algorithm: SignatureAlgorithm) async throws {
        let manager = try provider.installation(ring) { $0.registration?.algorithm = algorithm }
        await #expect(throws: TokenError.like(.invalidConfiguration)) { try await manager.registration?.register() }
        #expect(ring.made == 0 && provider.registrations.isEmpty)
    }
}

/// Lets nobody pass before it was opened.
private final class Gate: Sendable {
    private let state = Locked<(isOpen: Bool, waiting: [CheckedContinuation<Void, Never>])>((false, []))

    func open() {
        let waiting = state.withLock { state in
            defer { state = (true, []) }
            return state.waiting
        }
        for continuation in waiting { continuation.resume() }
    }

    func pass() async {
        await withCheckedContinuation { continuation in
            let isOpen = state.withLock { state in
                if !state.isOpen { state.waiting.append(continuation) }
                return state.isOpen
            }
            if isOpen { continuation.resume() }
        }
    }
}
