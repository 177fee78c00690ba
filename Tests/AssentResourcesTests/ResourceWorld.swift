import Assent
import AssentTesting
import Foundation
import HTTPTypes

let am = "https://am.example.com/am"
let api = "https://api.bank.example"

/// An authorization server that gives what it is asked for, and resources that answer 200 until a test says otherwise.
final class ResourceWorld: Sendable {
    typealias Exchange = InMemoryTransport.Exchange

    struct Behaviour: Sendable {
        var hasLinks = false
        /// Whether the server still knows the user's session.
        var hasSession = true
        var resource: @Sendable (Exchange) async throws -> HTTPReply = { _ in .json(200, [:]) }
        var token: @Sendable (Exchange) async throws -> HTTPReply = { _ in
            .json(200, ["access_token": "access", "refresh_token": "refresh", "expires_in": 600])
        }
    }

    let behaviour = Locked(Behaviour())
    private let log = Locked<[Exchange]>([])

    /// What the resources were asked, and nobody else.
    var calls: [Exchange] { log.withLock { $0 }.filter { $0.request.url?.hasPrefix(am) == false } }

    /// Everything that was sent.
    var sent: [Exchange] { log.withLock { $0 } }

    func assent(
        _ resources: [String: ResourceAccess] = [api: .accessToken(of: [.user, .device])], signedIn: Bool = false,
        _ change: (inout Assent.Configuration) -> Void = { _ in }
    ) async throws -> Assent {
        var configuration = Assent.Configuration(
            server: am, realm: "alpha", client: .init(id: "app", redirectURI: "app:/cb", scopes: ["accounts"]),
            resources: resources, pins: [:], vault: .memory)
        configuration.resourceBase = "\(api)/v1"
        configuration.transport = InMemoryTransport { [self] in try await answer($0) }
        configuration.clock = ManualClock()
        change(&configuration)
        let assent = try Assent(configuration)
        if signedIn { try await assent.tokens.install(Session(token: Secret("SESS"))) }
        return assent
    }

    private func answer(_ exchange: Exchange) async throws -> HTTPReply {
        log.withLock { $0.append(exchange) }
        let issuer = "\(am)/oauth2/realms/root/realms/alpha"
        let url = exchange.request.url ?? ""
        let now = behaviour.withLock { $0 }
        switch URLText.withoutQuery(url) {
        case "\(issuer)/.well-known/openid-configuration":
            var metadata: JSONObject = [
                "issuer": .string(issuer), "authorization_endpoint": .string("\(issuer)/authorize"),
                "token_endpoint": .string("\(issuer)/access_token"),
            ]
            if now.hasLinks { metadata["assent_web_link_endpoint"] = .string("\(issuer)/web_link") }
            return .json(200, .object(metadata))
        case "\(issuer)/authorize":
            let state = URLText.query(of: url)?[all: "state"].first ?? ""
            let answer = now.hasSession ? "code=c" : "error=login_required"
            return HTTPReply(
                HTTPResponse(status: .found, headerFields: [.location: "app:/cb?\(answer)&state=\(state)"]))
        case "\(issuer)/access_token": return try await now.token(exchange)
        default: return try await now.resource(exchange)
        }
    }
}

/// Where the package is.
let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent()

/// A table of docs/resources.md: the cells of its rows, without backquotes.
func table(_ name: String) throws -> [[String]] {
    let text = try String(contentsOf: root.appending(path: "docs/resources.md"), encoding: .utf8)
    guard let start = text.range(of: "<!-- table \(name) -->\n"),
        let end = text.range(of: "<!-- end of table \(name) -->")
    else { return [] }
    return text[start.upperBound..<end.lowerBound].split(separator: "\n").dropFirst(2).map { line in
        line.dropFirst().dropLast().split(separator: "|", omittingEmptySubsequences: false).map {
            $0.trimmingCharacters(in: .whitespaces).replacing("`", with: "")
        }
    }
}
