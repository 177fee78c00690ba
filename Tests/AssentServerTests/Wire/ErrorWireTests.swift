import AssentCore
import AssentSigningProtocol
import AssentStore
import HTTPTypes
import Hummingbird
import Testing

@testable import AssentEngine
@testable import AssentServer

@Suite("The engine's errors on each wire")
struct ErrorWireTests {
    /// Code, status, AM's text (`nil`: the engine's own), AM's number, whether there is a `failureUrl`.
    private static let table: [(EngineError.Code, Int, String?, String?, Bool)] = [
        (.invalidRequest, 400, nil, nil, false), (.unknownRealm, 400, "Invalid realm, /x", nil, false),
        (.unknownJourney, 400, "No Configuration found", "105", false),
        (.unknownIndexType, 400, "Unknown Authentication Index Type", nil, false),
        (.authIDUnreadable, 400, "Failed to parse JWT, detail", nil, false),
        (.authIDInvalid, 400, "AuthId JWT Signature not valid", nil, false),
        (.stepExpired, 401, "Session has timed out", "110", false), (.stepAlreadyAnswered, 400, nil, "110", false),
        (.stepAnsweredDifferently, 400, nil, nil, false), (.stepBeingAnswered, 503, nil, nil, false),
        (.wrongCallbackCount, 400, "Incorrect number of callbacks found in JSON response", nil, false),
        (.missingCallback, 400, "Required callback not found in JSON response", nil, false),
        (.invalidAnswer, 400, "IDToken/x detail", nil, false),
        (
            .suspendedJourneyUnknown, 401,
            "org.forgerock.openam.auth.nodes.framework.token.SuspendedAuthSessionException: "
                + "Token not found. It may have expired.", nil, false
        ),
        (.loginFailed, 401, "Login failure", nil, true), (.declined, 401, "Login failure", nil, true),
        (.approvalExpired, 401, "Login failure", nil, true), (.noDevice, 401, "Login failure", nil, true),
        (.accountLocked, 401, "Your account has been locked.", "112", true),
        (.userInactive, 401, "User not Active", "104", true),
        (
            .differentUser, 401, "Session Upgrade fails since user is different than original authenticated user",
            "124", false
        ),
        (.transactionUnreadable, 401, "Unable to read transaction.", "128", false),
        (.sessionRequired, 401, "Access Denied", nil, false), (.forbidden, 403, "Permission denied.", nil, false),
        (.tokenKind, 403, nil, nil, false), (.statelessRefused, 403, nil, nil, false),
        (.payloadEncryptionRequired, 403, nil, nil, false), (.payloadEncryptionMismatch, 403, nil, nil, false),
        (.notFound, 404, nil, nil, false),
        (.unknownPolicySet, 404, "/x application not found in realm.", nil, false),
        (.invalidResources, 400, "Invalid value resources", nil, false),
        (.lastAdministrator, 409, nil, nil, false), (.exists, 409, nil, nil, false), (.tooLarge, 413, nil, nil, false),
        (.unsupportedMediaType, 415, nil, nil, false), (.tooManyRequests, 429, nil, nil, false),
        (.busy, 503, nil, nil, false), (.unavailable, 503, nil, nil, false), (.outcomeUnknown, 503, nil, nil, false),
        (.internalFailure, 500, nil, nil, false),
    ]

    @Test("Each interface says when to come back from 503")
    func retryAfter() throws {
        let name = try #require(HTTPField.Name("Retry-After"))
        let busy = EngineError(.busy, "detail")
        let replies: [Response] = [
            AMError(busy).response, .problem(busy), .signing(SigningRefusal(.busy)),
            .oauth(503, "temporarily_unavailable", "detail"),
        ]
        #expect(replies.map { $0.headers[name] } == ["1", "1", "1", "1"])
        #expect(Response.crest(503, "x", headers: [name: "7"]).headers[name] == "7")
        #expect(Response.crest(500, "x").headers[name] == nil)
    }

    @Test("Each interface says that nobody knows whether it was done, and none that nothing has changed")
    func outcomeUnknown() throws {
        let lost = StoreError(.outcomeUnknown, "lost")
        let error = EngineError(lost)
        #expect(error == .outcomeUnknown && !error.isTransient)
        let am = AMError(error)
        #expect(am.status == 503 && am.reason == "outcomeUnknown" && am.message == error.detail)
        let problem = Response.problem(error)
        #expect(problem.status.code == 503)
        for thrown in [lost, error] as [any Error] {
            let oauth = OAuthError(answering: thrown)
            #expect(oauth == .unavailable && oauth.detail == error.detail)
            let signing = SigningRefusal(answering: thrown)
            #expect(signing.code == .unavailable && signing.detail.contains("not known whether this was done"))
        }
        #expect(OAuthError(answering: StoreError(.unavailable, "away")).detail == EngineError.unavailable.detail)
    }

    @Test("Each code has AM's status, text, number and failureUrl, as the reference has them")
    func commonREST() {
        #expect(Set(Self.table.map(\.0)) == EngineError.Code.all)
        for (code, status, message, errorCode, hasFailureURL) in Self.table {
            let error = AMError(EngineError(code, "detail", about: "/x"))
            #expect(error.status == status, "\(code)")
            #expect(error.message == message ?? "detail", "\(code)")
            #expect(error.errorCode == errorCode, "\(code)")
            #expect(error.failureURL == (hasFailureURL ? "" : nil), "\(code)")
        }
        #expect(AMError(EngineError(.notFound)).message == "Resource cannot be found.")
        #expect(AMError(EngineError(EngineError.Code(rawValue: "new"))).status == 500)
    }

    @Test("Every code says something of its own, and only what may succeed later is transient")
    func sentences() {
        let sentences = EngineError.Code.all.map { EngineError($0).detail }
        #expect(Set(sentences).count == sentences.count)
        #expect(
            Set(EngineError.Code.all.filter { EngineError($0).isTransient })
                == [.stepBeingAnswered, .tooManyRequests, .busy, .unavailable])
    }

    @Test(
        "The gateway answers with the status that belongs to the code, and says when nobody can know",
        arguments: [
            (.invalidRequest, 400), (.sessionRequired, 401), (.forbidden, 403), (.tooLarge, 413),
            (.payloadEncryptionRequired, 403), (.payloadEncryptionMismatch, 403), (.unsupportedMediaType, 415),
            (.tooManyRequests, 429),
            (.unavailable, 503), (.busy, 503),
            (.outcomeUnknown, 503), (.internalFailure, 500), (.loginFailed, 500),
        ] as [(EngineError.Code, Int)])
    func problems(code: EngineError.Code, status: Int) {
        let response = Response.problem(EngineError(code))
        #expect(Int(response.status.code) == status)
        #expect(response.headers[.contentType] == "application/problem+json")
    }

    @Test(
        "An OAuth error has the status and the challenge of its RFC",
        arguments: [
            (.invalidGrant, 400, nil), (.invalidClient, 400, nil),
            (OAuthError(.invalidClient, "", wanted: .clientCredentials), 401, #"Basic realm="/alpha""#),
            (.missingToken, 401, #"Bearer realm="/alpha""#),
            (.invalidToken, 401, #"Bearer realm="/alpha", error="invalid_token""#),
            (.insufficientScope("openid"), 403, #"Bearer error="insufficient_scope", scope="openid""#),
            (.unavailable, 503, nil), (OAuthError(answering: EngineError.internalFailure("x")), 500, nil),
        ] as [(OAuthError, Int, String?)])
    func oauth(error: OAuthError, status: Int, challenge: String?) {
        let response = Response.oauth(error, realm: "/alpha")
        #expect(Int(response.status.code) == status)
        #expect(response.headers[.wwwAuthenticate] == challenge)
    }

    @Test("The token endpoint's reply has the members of RFC 6749 in AM's order")
    func tokens() {
        let reply = IssuedTokens(
            accessToken: Secret("a"), tokenType: "Bearer", expiresIn: 3600, refreshToken: Secret("r"),
            idToken: Secret("i"), scopes: ["openid", "accounts"])
        #expect(
            reply.json.object?.names == [
                "access_token", "refresh_token", "scope", "id_token", "token_type", "expires_in",
            ])
        #expect(reply.json["scope"] == "openid accounts")
        #expect(reply.json["token_type"] == "Bearer")
        #expect(reply.json["expires_in"] == 3600)
        let bare = IssuedTokens(
            accessToken: Secret("a"), tokenType: "DPoP", expiresIn: 1, refreshToken: nil, idToken: nil, scopes: [])
        #expect(bare.json["refresh_token"] == nil)
    }
}
