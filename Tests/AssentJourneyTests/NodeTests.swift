import AssentCore
import AssentJourney
import AssentTesting
import HTTPTypes
import Testing

@Suite struct NodeTests {
    @Test("A step, an end and a refusal become nodes")
    func kinds() async throws {
        let step = try await client(script([step([name])])).start("Login").step
        #expect(step?.callbacks.count == 1)
        let session = try await client(script([success])).start("Login").session
        #expect(session == Session(token: Secret("T0ken"), successURL: "/console", realm: "/alpha"))
        let error = try await client(script([.json(401, ["code": 401, "message": "Login failure"])])).start().error
        #expect(error?.code == .invalidCredentials && error?.status == 401 && error?.message == "Login failure")
    }

    @Test("What else the server says at the end of a journey is there as data, in no description and without the token")
    func details() async throws {
        let end: JSONValue = [
            "tokenId": "T0ken", "successUrl": "/console", "realm": "/alpha", "cnf": ["jkt": "abc"],
            "assent_kind": "stateless", "greeting": "Hello, An4", "points": [1, 2],
        ]
        let session = try #require(try await client(script([.json(200, end)])).start("Login").session)
        #expect(session.details == ["greeting": "Hello, An4", "points": [1, 2]])
        #expect(try await client(script([success])).start("Login").session?.details == JSONObject())
        var shown = "\(session) \(JourneyNode.success(session))"
        dump(session, to: &shown)
        for secret in ["T0ken", "An4"] { #expect(!shown.contains(secret)) }
        #expect(shown.contains("/alpha"))
    }

    @Test("A journey without session ends with an empty token, which is kept as such")
    func noSession() async throws {
        let session = try await client(script([.json(200, ["successUrl": "/c", "realm": "/"])])).start().session
        #expect(session?.token.isEmpty == true)
        #expect(session?.successURL == "/c")
    }

    @Test(
        "A reply that AM would not give is a failure that keeps the status",
        arguments: [
            (200, "{}", JourneyFailure.Code.malformedReply), (200, "[]", .malformedReply),
            (200, "<html>", .malformedReply), (200, "", .malformedReply), (200, #"{"authId":1}"#, .malformedReply),
            (200, #"{"authId":"a"}"#, .malformedReply), (200, #"{"authId":"a","callbacks":[1]}"#, .malformedReply),
            (200, #"{"tokenId":5,"realm":"/"}"#, .malformedReply), (200, #"{"tokenId":"a\nb"}"#, .malformedReply),
            (200, #"{"authId":"a","authId":"b","callbacks":[]}"#, .malformedReply), (204, "{}", .unexpectedStatus),
            (302, "{}", .unexpectedRedirect), (503, "busy", .malformedReply),
            (400, #"{"code":1999,"message":"m"}"#, .timedOut), (408, #"{"code":"requestTimedOut"}"#, .timedOut),
        ])
    func strange(status: Int, body: String, code: JourneyFailure.Code) async throws {
        let reply = HTTPReply(HTTPResponse(status: .init(code: status)), body: HTTPBody(body))
        let failure = try await client(script([reply])).start("Login").failure
        #expect(failure?.code == code)
        #expect(failure?.status == status)
    }

    @Test("A server error with a JSON body is the server's no, with its status", arguments: [500, 502, 503])
    func serverError(status: Int) async throws {
        let error = try await client(script([.json(status, ["message": "later"])])).start().error
        #expect(error?.status == status && error?.code == .other && error?.message == "later")
    }

    @Test("No reply is a failure that says whether the request may have had an effect")
    func noReply() async throws {
        let transport = InMemoryTransport { _ in
            throw HTTPTransportError(.connectionClosed, "gone", mayHaveHadEffect: true)
        }
        let failure = try await client(transport).start().failure
        #expect(failure?.code == .transport && failure?.transportError?.mayHaveHadEffect == true)
        let cancelled = InMemoryTransport { _ in throw CancellationError() }
        #expect(try await client(cancelled).start().failure?.code == .cancelled)
    }

    @Test("A redirect is not followed, and its query is not quoted")
    func redirect() async throws {
        let reply = HTTPReply(
            HTTPResponse(status: .found, headerFields: [.location: "https://x.example/l?goto=s3cret"]))
        let failure = try await client(script([reply])).start().failure
        #expect(failure?.detail.contains("https://x.example") == true)
        #expect(failure.map { "\($0)" }?.contains("s3cret") == false)
    }

    @Test("What is too large is refused: bytes, depth, callbacks")
    func bounds() async throws {
        let limits = JourneyLimits(
            http: HTTPLimits(replyBytes: 2000), json: JSONLimits(depth: 8), callbacks: 3)
        let huge = HTTPReply(HTTPResponse(status: .ok), body: HTTPBody(String(repeating: " ", count: 2001)))
        let failure = try await client(script([huge]), limits: limits).start().failure
        #expect(failure?.code == .replyTooLarge && failure?.status == 200)
        let deep = #"{"authId":"a","callbacks":[{"output":"# + String(repeating: "[", count: 9) + "}]"
        let deepReply = HTTPReply(HTTPResponse(status: .ok), body: HTTPBody(deep))
        #expect(try await client(script([deepReply]), limits: limits).start().failure?.code == .malformedReply)
        let many = step([name, name, name, name])
        #expect(try await client(script([many]), limits: limits).start().failure?.code == .replyTooLarge)
        #expect(try await client(script([step([name, name, name])]), limits: limits).start().step != nil)
    }
}

@Suite struct ReasonTests {
    @Test(
        "The server's no has a typed reason",
        arguments: [
            (401, ["message": "Session has timed out", "detail": ["errorCode": "110"]], .sessionTimedOut),
            (401, ["message": "Zeit", "detail": ["errorCode": 110]], .sessionTimedOut),
            (400, ["message": "Authentication Error: Authentication timeout."], .sessionTimedOut),
            (401, ["message": "Unable to read transaction.", "detail": ["errorCode": "128"]], .transactionUnknown),
            (400, ["message": "Incorrect number of callbacks found in JSON response"], .callbackMismatch),
            (400, ["message": "Required callback not found in JSON response"], .callbackMismatch),
            (401, ["message": "Your account has been locked."], .accountLocked),
            (401, ["message": "x", "detail": ["errorCode": "112"]], .accountLocked),
            (401, ["message": "Falsches Kennwort"], .invalidCredentials), (401, [:], .invalidCredentials),
            (401, ["message": "Access Denied"], .other), (401, ["detail": ["errorCode": "999"]], .other),
            (400, ["message": "?"], .other), (403, [:], .other),
            // The wrong address: a gateway, a server without the path /am, a realm that is not there.
            (
                401, ["type": "about:blank", "title": "Unauthorized", "status": 401, "detail": "Sign in first."],
                .notFound
            ),
            (403, ["type": "about:blank", "title": "Forbidden", "status": 403, "detail": "No."], .notFound),
            (401, ["code": 401, "title": "Unauthorized", "message": "Login failure"], .invalidCredentials),
            (404, ["code": 404, "reason": "Not Found", "message": "Not Found"], .notFound), (404, [:], .notFound),
            (400, ["code": 400, "message": "Invalid realm, /x"], .realmUnknown),
            (401, ["message": "Login failure", "detail": ["reason": "approvalExpired"]], .approvalExpired),
            (401, ["message": "Login failure", "detail": ["reason": "noDevice"]], .noDevice),
            (403, ["message": "No.", "detail": ["reason": "statelessRefused"]], .statelessRefused),
            (200, ["tokenId": "t", "successUrl": "/", "failure": "declined"], .declined),
            (200, ["tokenId": "t", "successUrl": "/", "failure": "approvalExpired"], .approvalExpired),
            (200, ["tokenId": "t", "successUrl": "/", "failure": "noDevice"], .noDevice),
            (200, ["tokenId": "t", "successUrl": "/", "failure": "accountLocked"], .accountLocked),
            (200, ["tokenId": "t", "successUrl": "/", "failure": "loginFailed"], .invalidCredentials),
            (503, ["message": "Look.", "detail": ["reason": "outcomeUnknown"]], .outcomeUnknown),
            (503, ["message": "Later."], .other),
            (
                401,
                [
                    "message":
                        "org.forgerock.openam.auth.nodes.framework.token.SuspendedAuthSessionException: Token not found."
                ], .suspendedInvalid
            ),
        ] as [(Int, JSONValue, JourneyError.Code)])
    func reasons(status: Int, body: JSONValue, reason: JourneyError.Code) async throws {
        #expect(try await client(script([.json(status, body)])).start().error?.code == reason)
    }

    @Test("A page that says that nothing is there is told as a wrong address")
    func pageNotFound() async throws {
        let page = HTTPReply(HTTPResponse(status: .notFound), body: HTTPBody("<html>"))
        let error = try await client(script([page])).start().error
        #expect(error?.code == .notFound && error?.status == 404)
        #expect(error?.suggestion?.contains("/am") == true && error?.suggestion?.contains("gateway") == true)
    }

    @Test(
        "Recorded refusals have the right reason", .enabled(if: fixtures != nil),
        arguments: [
            ("ping/journey-error-401-session-timeout-110.json", 401, JourneyError.Code.sessionTimedOut),
            ("ping/journey-error-400-timeout-pre653.json", 400, .sessionTimedOut),
            ("ping/journey-error-401-invalid-credentials.json", 401, .invalidCredentials),
            ("ping/journey-error-401-login-failure.json", 401, .invalidCredentials),
            ("ping/journey-error-500.json", 500, .other), ("js/mockapi-authFail.json", 401, .invalidCredentials),
            ("fr/authTreeMockTest_Authenticate_SessionTimeout.json", 401, .sessionTimedOut),
        ])
    func recorded(file: String, status: Int, reason: JourneyError.Code) async throws {
        let transport = script([.json(status, try fixture(file))])
        #expect(try await client(transport).start().error?.code == reason)
    }

    @Test("A reason does not show what was typed")
    func noEcho() async throws {
        let error = JourneyError(
            status: 401, body: JSONObject([.init(name: "message", value: "User hunter2 is unknown")]))
        #expect(!"\(error)".contains("hunter2"))
    }
}
