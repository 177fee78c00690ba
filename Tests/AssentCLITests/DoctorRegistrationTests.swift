import Assent
import AssentConfiguration
import AssentCore
import HTTPTypes
import Testing

@testable import AssentCLI

@Suite("What doctor makes of a provider's answers")
struct DoctorRegistrationTests {
    /// Describes itself, and answers all else as the test wants.
    private struct Provider: HTTPTransport {
        let answer: @Sendable (_ path: String) -> HTTPReply
        let description: @Sendable () -> JSONValue

        @concurrent func send(_ call: HTTPCall) async throws -> HTTPReply {
            let path = call.request.path ?? ""
            guard path == "/tenant/.well-known/openid-configuration" else { return answer(path) }
            return HTTPReply(HTTPResponse(status: .ok), body: HTTPBody(description().serializedBytes()))
        }
    }

    private static let issuer = "https://op.example/tenant"

    private static let client: ClientFile = {
        var file = ClientFile(
            server: "https://op.example", realm: "/", cookieName: "session", clientID: "app",
            redirectURI: "https://app.example/callback", scopes: ["openid", "pay"], journey: "Login", resources: [],
            authority: nil, pins: [])
        file.issuer = issuer
        file.isProviderOnly = true
        return file
    }()

    private func findings(
        of app: ClientFile = client, scopes: [String] = ["openid", "pay"], named: String = issuer,
        registersAt endpoint: String? = nil, _ answer: @escaping @Sendable (String) -> HTTPReply
    ) async -> [Diagnosis] {
        let provider = Provider(answer: answer) {
            .object(
                JSONObject(omittingNil: [
                    "issuer": .string(named), "authorization_endpoint": "https://op.example/authorize",
                    "token_endpoint": "https://op.example/token",
                    "scopes_supported": .array(scopes.map(JSONValue.string)),
                    "registration_endpoint": endpoint.map(JSONValue.string),
                ]))
        }
        return await RegistrationExamination(client: app, transport: provider).findings()
    }

    private static func redirect(_ location: String) -> HTTPReply {
        HTTPReply(HTTPResponse(status: .found, headerFields: [.location: location]))
    }

    @Test("A request that nobody may be asked about is refused for want of a user: then client and scopes are right")
    func loginRequired() async {
        let findings = await findings { path in
            let isWhole = ["prompt=none", "client_id=app", "scope=openid%20pay"].allSatisfy {
                path.replacing("+", with: "%20").contains($0)
            }
            return Self.redirect(
                "https://app.example/callback?error=\(isWhole ? "interaction_required" : "server_error")&state=s")
        }
        #expect(findings.map(\.verdict) == [.fine], "\(findings)")
    }

    @Test("A scope of which the provider does not tell is a note, one that it refuses a problem with its words")
    func scopes() async {
        let note = await findings(scopes: ["openid"]) { _ in
            Self.redirect("https://app.example/callback?error=login_required")
        }
        #expect(note.map(\.verdict) == [.note] && note[0].text.contains("does not tell of pay"), "\(note)")
        let problem = await findings { _ in
            Self.redirect("https://app.example/callback?error=invalid_scope&error_description=No%20%1B%5B31mpay")
        }
        #expect(problem.map(\.verdict) == [.problem], "\(problem)")
        #expect(problem[0].text.contains("Correct client.scopes"), "\(problem)")
        #expect(!problem[0].text.unicodeScalars.contains("\u{1B}"))
    }

    @Test("Of an app whose installations register, only that is asked: its id is not a client's")
    func installations() async {
        var app = Self.client
        app.registration = ClientFile.Registration()
        let refusal = { @Sendable (_: String) in HTTPReply(HTTPResponse(status: .badRequest)) }
        let taken = await findings(of: app, registersAt: "https://op.example/register", refusal)
        #expect(taken.map(\.verdict) == [.fine], "\(taken)")
        let none = await findings(of: app, refusal)
        #expect(none.map(\.verdict) == [.problem] && none[0].text.contains("takes no installations"), "\(none)")
    }

    @Test("A provider that leads to a page of its own, or does not serve, leaves the question open")
    func open() async {
        let own = await findings { _ in Self.redirect("https://op.example/login?error=login_required") }
        #expect(own.map(\.verdict) == [.note], "\(own)")
        let down = await findings { _ in HTTPReply(HTTPResponse(status: .serviceUnavailable)) }
        #expect(down.map(\.verdict) == [.note], "\(down)")
    }

    @Test("A provider that calls itself otherwise, or refuses without a redirect, is a problem")
    func refused() async {
        let other = await findings(named: "https://op.example/other") { _ in
            HTTPReply(HTTPResponse(status: .internalServerError))
        }
        #expect(other.map(\.verdict) == [.problem], "\(other)")
        let refused = await findings { _ in
            HTTPReply(HTTPResponse(status: .badRequest), body: HTTPBody("<html>"))
        }
        #expect(refused.map(\.verdict) == [.problem] && refused[0].text.contains("status 400"), "\(refused)")
    }
}
