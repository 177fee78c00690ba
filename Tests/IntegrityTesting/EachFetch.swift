package import Assent
import AssentTesting
package import Foundation
import HTTPTypes

/// An app and its servers in one process, and each kind of fetch that the app can make.
package struct EachFetch: Sendable {
    /// A kind of fetch.
    package enum Kind: String, CaseIterable, Sendable {
        case user, facade, webLink, implicit, device, nobody, task, download, journey, stateless, pinLogin
        case implicitLogin, tokens, deviceToken, signing

        /// Whether it comes so far here that something is sent when nothing is refused: the others lack a credential,
        /// or a user who is remembered.
        package var sends: Bool { ![.implicit, .device, .pinLogin, .implicitLogin].contains(self) }
    }

    private static let server = "https://am.example.com/am"
    private static let bank = "https://api.bank.example"
    private static let issuer = "\(server)/oauth2/realms/root/realms/alpha"

    package let assent: Assent
    private let transport: InMemoryTransport
    /// Where a download goes.
    private let file: String

    /// How many calls have left.
    package var sent: Int { transport.exchanges.count }

    /// - Parameters:
    ///   - keys: a file for the signing device's keys, which need not be there; a download is put beside it.
    ///   - onSending: is called before each reply, as if in the network.
    ///   - change: changes the app's configuration.
    /// - Throws: what making the app throws.
    package init(
        keys: URL, onSending: @escaping @Sendable () -> Void = {}, _ change: (inout Assent.Configuration) -> Void
    ) throws {
        file = keys.deletingLastPathComponent().appending(path: "reply").path
        transport = InMemoryTransport { exchange in
            onSending()
            return Self.answer(exchange)
        }
        var configuration = Assent.Configuration(
            server: Self.server, realm: "alpha", client: .init(id: "app", redirectURI: "app:/cb"),
            resources: [Self.bank: .accessToken(of: [.user, .implicit, .device])], pins: [:], vault: .memory)
        configuration.transport = transport
        configuration.deviceKeys = SoftwareKeyProvider(unprotectedFile: keys)
        configuration.registration = RegistrationConfiguration(keys: SoftwareKeyProvider(unprotectedFile: keys))
        configuration.registration?.deviceScopes = ["app-data"]
        configuration.deviceVault = .memory
        // Its calls would be among those that are counted.
        configuration.integrity.tellsServer = false
        change(&configuration)
        assent = try Assent(configuration)
    }

    /// Puts the session of a signed-in user into the app; nothing is sent for it.
    package func signIn() async throws { try await assent.tokens.install(Session(token: Secret("SESS"))) }

    /// Makes a fetch.
    ///
    /// - Returns: whether a probe has refused it.
    package func isRefused(_ kind: Kind) async -> Bool {
        do {
            try await make(kind)
            return false
        } catch let error as ResourceError {
            return error.code == .integrityFailed
        } catch let error as SigningError {
            return error.code == .integrityFailed
        } catch let error as TokenError {
            return error.transportError?.code == .integrityFailed
        } catch let error as JourneyFailure {
            return error.transportError?.code == .integrityFailed
        } catch let error as HTTPTransportError {
            return error.code == .integrityFailed
        } catch {
            return false
        }
    }

    private func make(_ kind: Kind) async throws {
        let address = "\(Self.bank)/accounts"
        switch kind {
        case .user: _ = try await assent.userClient.sendAuthenticatedRequest(.get(address))
        case .facade: _ = try await assent.send(.get(address))
        case .webLink: _ = try await assent.userClient.webLink(to: "https://shop.bank.example/orders")
        case .implicit: _ = try await assent.userClient.sendImplicitRequest(.get(address))
        case .device: _ = try await assent.deviceClient.sendRequest(.get(address))
        case .nobody: _ = try await assent.deviceClient.sendUnauthenticatedRequest(.get(address))
        case .task:
            let error = await withCheckedContinuation { continuation in
                assent.deviceClient.sendUnauthenticatedRequest(.get(address)) { continuation.resume(returning: $1) }
            }
            if let error { throw error }
        case .download:
            let download = ResourceRequest.get(address).download(to: file)
            _ = try await assent.deviceClient.sendUnauthenticatedRequest(download)
        case .journey: _ = try await assent.journey("Login") { _ in .next }
        case .stateless: try await assent.authenticateStateless("Login") { _ in .next }
        case .pinLogin: try await assent.logIn("ana", pin: Secret("1234"))
        case .implicitLogin: try await assent.userClient.implicitlyAuthenticate("ana", scopes: ["greeting"])
        case .tokens: _ = try await assent.tokens.refresh()
        case .deviceToken: try await assent.deviceClient.authenticateDevice(scopes: ["app-data"])
        case .signing:
            let invite = try SigningInvite(
                typed: "AAAQEAYEAUDAOCAJIICA", issuer: "\(Self.server)/signing/realms/root/realms/alpha")
            _ = try await assent.device.enrol(invite)
        }
    }

    private static func answer(_ exchange: InMemoryTransport.Exchange) -> HTTPReply {
        let url = exchange.request.url ?? ""
        switch URLText.withoutQuery(url) {
        case "\(issuer)/.well-known/openid-configuration":
            return .json(
                200,
                [
                    "issuer": .string(issuer), "authorization_endpoint": .string("\(issuer)/authorize"),
                    "token_endpoint": .string("\(issuer)/access_token"),
                    "registration_endpoint": .string("\(issuer)/register"),
                    "assent_web_link_endpoint": .string("\(issuer)/web_link"),
                ])
        case "\(issuer)/web_link": return .json(200, ["url": .string("\(server)/UI/Link?id=abc"), "expires_in": 60])
        case "\(issuer)/authorize":
            let state = URLText.query(of: url)?[all: "state"].first ?? ""
            return HTTPReply(
                HTTPResponse(status: .found, headerFields: [.location: "app:/cb?code=c&state=\(state)"]))
        case "\(issuer)/access_token":
            return .json(200, ["access_token": "access", "refresh_token": "refresh", "expires_in": 600])
        case "\(issuer)/register":
            var answer = (try? JSONValue.parse(exchange.body))?.object ?? JSONObject()
            answer["client_id"] = "app~1"
            answer["registration_client_uri"] = .string("\(issuer)/register/app~1")
            answer["registration_access_token"] = "registration-token"
            return .json(201, .object(answer))
        case let path where path.hasSuffix("/authenticate"):
            return .json(200, ["tokenId": "SESS", "successUrl": "/", "realm": "/alpha"])
        default: return .json(200, [:])
        }
    }
}
