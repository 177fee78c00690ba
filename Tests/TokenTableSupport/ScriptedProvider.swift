package import AssentCore
import AssentTokens
import HTTPTypes

/// A provider that is not Assent's: it rotates refresh tokens, answers none of them twice, and ends a grant whose
/// refresh token is used a second time. It has no ID tokens.
package final class ScriptedProvider: Sendable {
    private struct Grant {
        var refreshToken: String
        var used: Set<String> = []
        var isRevoked = false
    }

    private struct State {
        var codes: [String: String] = [:]
        var grants: [Grant] = []
        var issued = 0
    }

    package static let mine = Session(token: Secret("session+of=ana&%"))
    package static let others = Session(token: Secret("session+of=ben&%"))

    private let state = Locked(State())
    private let base: @Sendable () -> String

    package init(base: @escaping @Sendable () -> String) { self.base = base }

    /// Refresh tokens that can be used.
    package var liveRefreshTokens: Int { state.withLock { $0.grants.count { !$0.isRevoked } } }

    /// Grants that were ended because a refresh token was used twice.
    package var endedGrants: Int { state.withLock { $0.grants.count(where: \.isRevoked) } }

    /// A world with this provider alone.
    package static func world() async throws -> (ProviderWorld, ScriptedProvider) {
        let port = Locked(0)
        let provider = ScriptedProvider { "http://localhost:\(port.withLock { $0 })" }
        let relay = try await FaultRelay { try provider.answer($0, $1) }
        port.withLock { $0 = relay.port }
        let configuration = try TokenConfiguration(
            issuer: relay.url(""), clientID: "app+1", redirectURI: "https://bank.example/cb?a=1&b=%2B",
            scopes: ["accounts"])
        let world = ProviderWorld(
            relay: relay, configuration: configuration, repeatsAnswers: false, sessions: (mine, others))
        return (world, provider)
    }

    func answer(_ request: HTTPRequest, _ body: [UInt8]) throws -> HTTPReply {
        let url = request.url ?? ""
        switch URLText.withoutQuery(url).dropFirst(base().count) {
        case "/.well-known/openid-configuration":
            return json(
                200,
                [
                    "issuer": .string(base()), "authorization_endpoint": .string(base() + "/authorize"),
                    "token_endpoint": .string(base() + "/token"), "revocation_endpoint": .string(base() + "/revoke"),
                    "code_challenge_methods_supported": ["S256"],
                    "authorization_response_iss_parameter_supported": true,
                ])
        case "/authorize": return try authorize(request, FormEncoding.parse(URLText.query(of: url)?.text ?? ""))
        case "/token": return try token(FormEncoding.parse(body))
        case "/revoke":
            let token = try FormEncoding.parse(body)["token"] ?? ""
            state.withLock { state in
                for index in state.grants.indices where state.grants[index].refreshToken == token {
                    state.grants[index].isRevoked = true
                }
            }
            return json(200, [:])
        default: return json(404, [:])
        }
    }

    private func authorize(_ request: HTTPRequest, _ query: FormItems) throws -> HTTPReply {
        let session = HTTPField.Name("iPlanetDirectoryPro").flatMap { request.headerFields[$0] } ?? ""
        guard [Self.mine, Self.others].contains(where: { $0.token == Secret(session) }) else {
            return json(401, ["error": "login_required"])
        }
        let code = SystemRandom().token() + "+/=&%"
        state.withLock { $0.codes[code] = query["code_challenge"] ?? "" }
        var answer = FormItems()
        answer.append("code", code)
        answer.append("state", query["state"] ?? "")
        answer.append("iss", base())
        let location = "\(query["redirect_uri"] ?? "")&\(FormEncoding.encode(answer))"
        return HTTPReply(HTTPResponse(status: .found, headerFields: [.location: location]))
    }

    private func token(_ form: FormItems) throws -> HTTPReply {
        guard form["client_id"] == "app+1" else { return json(401, ["error": "invalid_client"]) }
        return state.withLock { state in
            switch form["grant_type"] {
            case "authorization_code":
                let challenge = Base64URL.encode(SHA2.sha256((form["code_verifier"] ?? "").utf8))
                guard state.codes.removeValue(forKey: form["code"] ?? "") == challenge else {
                    return json(400, ["error": "invalid_grant"])
                }
                state.grants.append(Grant(refreshToken: Self.refreshToken()))
                return issue(&state, state.grants.count - 1)
            case "refresh_token":
                let token = form["refresh_token"] ?? ""
                if let index = state.grants.firstIndex(where: { $0.used.contains(token) }) {
                    state.grants[index].isRevoked = true
                }
                guard let index = state.grants.firstIndex(where: { $0.refreshToken == token && !$0.isRevoked }) else {
                    return json(400, ["error": "invalid_grant"])
                }
                state.grants[index].used.insert(token)
                state.grants[index].refreshToken = Self.refreshToken()
                return issue(&state, index)
            default: return json(400, ["error": "unsupported_grant_type"])
            }
        }
    }

    private func issue(_ state: inout State, _ grant: Int) -> HTTPReply {
        state.issued += 1
        return json(
            200,
            [
                "access_token": .string("access-\(state.issued)"), "token_type": "Bearer", "expires_in": "600",
                "refresh_token": .string(state.grants[grant].refreshToken),
            ])
    }

    /// With everything that a form must escape.
    private static func refreshToken() -> String { SystemRandom().token() + "+&=% /".replacing(" ", with: "") }

    private func json(_ status: Int, _ value: JSONValue) -> HTTPReply {
        HTTPReply(
            HTTPResponse(status: .init(code: status), headerFields: [.contentType: "application/json"]),
            body: HTTPBody(value.serializedBytes()))
    }
}
