import Assent
import AssentTesting
import HTTPTypes
import Testing

@testable import AssentResources

@Suite("The clients of users, installations and nobody")
struct ClientTests {
    @Test("Row 11: clients that nobody has shared are an error with number 10110, and no trap")
    func unshared() async throws {
        let shared = SharedClients()
        let user = #expect(throws: ResourceError.self) { try shared.user }
        let device = #expect(throws: ResourceError.self) { try shared.device }
        #expect(user?.number == 10110)
        #expect(device?.number == 10110)
        #expect(user?.domain == .generic)
    }

    @Test("Rows 11 and 25: what is shared is the façade's own client; another configuration is refused")
    func shared() async throws {
        let (first, second) = (try await ResourceWorld().assent(), try await ResourceWorld().assent())
        try first.share()
        try first.share()
        #expect(try SharedUserClient.instance === first.userClient)
        #expect(try SharedDeviceClient.instance === first.deviceClient)
        let error = #expect(throws: ResourceError.self) { try second.share() }
        #expect(error?.code == .notConfigured)
        #expect(try SharedUserClient.instance === first.userClient)
    }

    @Test("Row 7: without a signed-in user the call is 9010, and the resource is not asked")
    func nobodySignedIn() async throws {
        let world = ResourceWorld()
        let assent = try await world.assent()
        let error = await #expect(throws: ResourceError.self) {
            try await assent.userClient.sendAuthenticatedRequest(.get("accounts"))
        }
        #expect(error?.number == 9010)
        #expect(error?.domain == .fetchResource)
        #expect(world.calls.isEmpty)
    }

    @Test("Row 8: without an implicit login the call is 9026, and nothing is sent, whoever is signed in")
    func implicitWithoutLogin() async throws {
        let world = ResourceWorld()
        let assent = try await world.assent([api: .accessToken(of: [.user, .implicit])], signedIn: true)
        let error = await #expect(throws: ResourceError.self) {
            try await assent.userClient.sendImplicitRequest(.get("greeting"))
        }
        #expect(error?.number == 9026)
        #expect(error?.domain == .fetchImplicitResource)
        let told = await completed { assent.userClient.sendImplicitRequest(.get("greeting"), completion: $0) }
        #expect(told.error == error)
        #expect(world.sent.isEmpty)
    }

    @Test("Row 8: an origin that does not get the tokens of remembered users is refused before anything is sent")
    func implicitElsewhere() async throws {
        let world = ResourceWorld()
        let assent = try await world.assent([api: .accessToken(of: [.user, .device])], signedIn: true)
        let error = await #expect(throws: ResourceError.self) {
            try await assent.userClient.sendImplicitRequest(.get("greeting"))
        }
        #expect(error?.number == 10101 && error?.domain == .fetchImplicitResource)
        #expect(world.sent.isEmpty)
    }

    @Test("Row 9: without a token of the installation the call is 10012, and nothing is sent, whoever is signed in")
    func deviceWithoutToken() async throws {
        let world = ResourceWorld()
        let assent = try await world.assent(signedIn: true)
        let error = await #expect(throws: ResourceError.self) {
            try await assent.deviceClient.sendRequest(.get("app-info"))
        }
        #expect(error?.number == 10012)
        #expect(error?.domain == .fetchAnonymousResource)
        #expect(world.sent.isEmpty)
    }

    @Test("Row 10: a call of nobody carries no credential, and no cookie of the user's, also while one is signed in")
    func nobody() async throws {
        let world = ResourceWorld()
        world.behaviour.withLock {
            $0.resource = { _ in .json(200, [:], headers: [.setCookie: "who=ana; Path=/"]) }
        }
        let assent = try await world.assent([api: .both], signedIn: true)
        _ = try await assent.userClient.sendAuthenticatedRequest(.get("accounts"))
        _ = try await assent.userClient.sendAuthenticatedRequest(.get("accounts"))
        let user = try #require(world.calls.last?.request.headerFields)
        #expect(user[.authorization] == "Bearer access")
        #expect(user[.cookie]?.contains("who=ana") == true)
        _ = try await assent.deviceClient.sendUnauthenticatedRequest(.get("status"))
        let fields = try #require(world.calls.last?.request.headerFields)
        #expect(fields[.authorization] == nil)
        #expect(fields[.cookie] == nil)
        let session = try #require(HTTPField.Name(WireName.sessionCookie))
        #expect(fields[session] == nil)
    }

    @Test("Row 18: every status is a response, its bytes as they came, and from 400 on an error as well")
    func statuses() async throws {
        for status in [200, 204, 304, 399, 400, 404, 500, 599] {
            let world = ResourceWorld()
            let bytes: [UInt8] = [0xFF, 0x00, 0xC3, 0x28]
            world.behaviour.withLock {
                $0.resource = { _ in HTTPReply(HTTPResponse(status: .init(code: status)), body: HTTPBody(bytes)) }
            }
            let assent = try await world.assent()
            let response = try await assent.deviceClient.sendUnauthenticatedRequest(.get("status"))
            #expect(response.status == status)
            #expect(response.data == bytes)
            #expect(response.authorization == .notAsked)
            #expect(response.error?.number == (status < 400 ? nil : 10106))
            let told = await completed {
                assent.deviceClient.sendUnauthenticatedRequest(.get("status"), completion: $0)
            }
            #expect(told.response?.data == bytes)
            #expect(told.error == response.error)
        }
    }

    @Test("Row 12: a method that is none of the six is told before the function returns nil")
    func method() async throws {
        let world = ResourceWorld()
        let assent = try await world.assent(signedIn: true)
        let told = Locked<ResourceError?>(nil)
        let request = ResourceRequest(path: "accounts", method: .trace)
        let task = assent.userClient.sendAuthenticatedRequest(request) { _, error in told.withLock { $0 = error } }
        #expect(task == nil)
        #expect(told.withLock { $0 }?.number == 10010)
        #expect(world.sent.isEmpty)
    }

    @Test("The first check that fails decides: method, fields, path, origin, credential")
    func order() async throws {
        let world = ResourceWorld()
        let assent = try await world.assent([:])
        let wrong: HTTPFields = [.authorization: "Bearer x"]
        let requests: [(ResourceRequest, Int)] = [
            (ResourceRequest(path: "..", method: .trace, headers: wrong), 10010),
            (ResourceRequest(path: "..", headers: wrong), 10019), (ResourceRequest(path: ".."), 10015),
            (ResourceRequest(path: "accounts"), 10101),
        ]
        for (request, number) in requests {
            let error = await #expect(throws: ResourceError.self) {
                try await assent.userClient.sendAuthenticatedRequest(request)
            }
            #expect(error?.number == number)
        }
        #expect(world.sent.isEmpty)
        let checks = try table("checks").map { $0[1] }
        #expect(checks == ["9102", "10010", "10019", "10015", "10101", "9010, 9026, 10012", "10101"])
    }

    @Test("Row 26: what the transport says reaches the completion once, in the domain and with the number of its cause")
    func transport() async throws {
        let causes: [(HTTPTransportError.Code, ResourceError.Domain, Int)] = [
            (.notPinned, .fetchUnauthenticatedResource, 10101), (.pinMismatch, .url, -1202),
            (.connectFailed, .url, -1004), (.timedOut, .url, -1001), (.cancelled, .generic, 9006),
        ]
        for (code, domain, number) in causes {
            let world = ResourceWorld()
            world.behaviour.withLock { $0.resource = { _ in throw HTTPTransportError(code, "x") } }
            let assent = try await world.assent()
            let told = await completed {
                assent.deviceClient.sendUnauthenticatedRequest(.get("status"), completion: $0)
            }
            #expect(told.response?.status == nil)
            #expect(told.error?.domain == domain)
            #expect(told.error?.number == number)
            let thrown = await #expect(throws: ResourceError.self) {
                try await assent.deviceClient.sendUnauthenticatedRequest(.get("status"))
            }
            #expect(thrown == told.error)
        }
    }

    @Test("Row 26: a server that is away during an approval is told as such, and not as an approval that is missing")
    func approvalWithoutServer() throws {
        for code in [HTTPTransportError.Code.timedOut, .connectFailed] {
            let cause = HTTPTransportError(code, "The server is away.")
            let failure = JourneyFailure(.transport, "The journey has no answer.", transportError: cause)
            let error = try #require(ResourceError(failure, .user))
            let expected = ResourceError(cause, CallKind.user.domain)
            #expect(error.code == expected.code && error.domain == .url)
        }
        let other = try #require(ResourceError(JourneyFailure(.unanswered, "Nobody answered."), .user))
        #expect(other.code == .approvalNeeded && other.domain == .fetchResource)
    }

    @Test("A clock that is ten years wrong fails closed and wipes nothing: set right, the user calls as before")
    func tenYears() async throws {
        for years in [10.0, -10] {
            let world = ResourceWorld()
            let clock = ManualClock()
            let assent = try await world.assent(signedIn: true) { $0.clock = clock }
            let before = world.behaviour.withLock { $0 }
            #expect(try await assent.userClient.sendAuthenticatedRequest(.get("accounts")).status == 200)
            let stored = try #require(try await assent.tokens.storedTokens())

            clock.advance(by: years * 365 * 86_400)
            // At such a time no certificate is valid.
            world.behaviour.withLock {
                $0.token = { _ in throw HTTPTransportError(.untrustedServer, "expired") }
                $0.resource = { _ in throw HTTPTransportError(.untrustedServer, "expired") }
            }
            let user = await #expect(throws: ResourceError.self) {
                try await assent.userClient.sendAuthenticatedRequest(.get("accounts"))
            }
            let nobody = await #expect(throws: ResourceError.self) {
                try await assent.deviceClient.sendUnauthenticatedRequest(.get("status"))
            }
            for error in [user, nobody] { #expect(error?.domain == .url && error?.number == -1202) }
            #expect(try await assent.user()?.session != nil)
            #expect(try await assent.tokens.storedTokens()?.accessToken == stored.accessToken)

            clock.advance(by: -years * 365 * 86_400)
            world.behaviour.withLock { $0 = before }
            #expect(try await assent.userClient.sendAuthenticatedRequest(.get("accounts")).status == 200)
        }
    }

    private func completed(
        _ start: (@escaping ResourceCompletion) -> NetworkTask?
    ) async -> (response: ResourceResponse?, error: ResourceError?) {
        let calls = Locked<[(ResourceResponse?, ResourceError?)]>([])
        await start { response, error in calls.withLock { $0.append((response, error)) } }?.ended()
        let told = calls.withLock { $0 }
        #expect(told.count == 1)
        return (told.first?.0, told.first?.1)
    }
}
