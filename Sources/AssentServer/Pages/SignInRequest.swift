import AssentCore
import AssentEngine
import HTTPTypes
import Hummingbird

/// What the query of the sign-in page asks for (am-server reference: `realm`, `goto`, `service`, `authIndexType`, …).
struct SignInRequest {
    /// The parameters that count, in the order in which links are written.
    private static let names = [
        "realm", "goto", "service", "authIndexType", "authIndexValue", "ForceAuth", "prompt", "login_hint",
        "ui_locales",
    ]

    /// The realm, for example `/alpha`.
    let realm: String

    /// `authIndexType`, and `service` for a journey that `service` names.
    let authIndexType: String?

    /// `authIndexValue`.
    let authIndexValue: String?

    let forceAuth: Bool

    /// Whether somebody is to sign in instead of the user whose session there is (`prompt=login`, OpenID Connect Core
    /// §3.1.2.1).
    let replacesSession: Bool

    /// `goto`, unchecked.
    let goto: String?

    /// The name that the user may want to sign in with (OpenID Connect Core §3.1.2.1).
    let loginHint: String?

    /// The languages that the client would have, the best first.
    let locales: String?

    /// Which of the browser's sign-ins it is about (`run`); `nil` for one that is to begin.
    let run: SignInRun?

    private let parameters: FormItems

    /// Reads the query.
    ///
    /// - Throws: ``RequestError`` 400 for a parameter that cannot be read or is there twice.
    init(_ request: Request) throws {
        var values: [String: String] = [:]
        var kept = FormItems()
        for name in Self.names {
            guard let value = try request.query(name), !value.isEmpty else { continue }
            guard value.utf8.count <= 8192 else {
                throw RequestError(400, "The parameter \(name) is too long.")
            }
            values[name] = value
            kept.append(name, value)
        }
        parameters = kept
        let parts = (values["realm"] ?? "/").split(separator: "/").map(String.init)
        realm = "/" + (parts == ["root"] ? [] : parts).joined(separator: "/")
        goto = values["goto"]
        loginHint = values["login_hint"].flatMap { try? DisplayText($0).text }
        locales = values["ui_locales"]
        run = try request.query("run").flatMap(SignInRun.init(named:))
        forceAuth = values["ForceAuth"]?.lowercased() == "true"
        replacesSession = values["prompt"]?.split(separator: " ").contains("login") ?? false
        authIndexType = values["authIndexType"] ?? values["service"].map { _ in "service" }
        authIndexValue = values["authIndexType"] == nil ? values["service"] : values["authIndexValue"]
    }

    /// The transaction that is to be approved, if it asks for that. It begins at most once: looking at the page must
    /// not begin it.
    var transactionID: String? {
        switch authIndexType?.lowercased() {
        case "transaction": return authIndexValue ?? ""
        case "composite_advice":
            guard let advice = try? CompositeAdvice.parse(authIndexValue ?? ""), case .transaction(let id) = advice.kind
            else { return nil }
            return id
        default: return nil
        }
    }

    /// Asks for the journey's first page.
    func begin(_ request: inout AuthenticateRequest) {
        request.authIndexType = authIndexType
        request.authIndexValue = authIndexValue
        request.forceAuth = forceAuth
        request.replacesSession = replacesSession
    }

    /// The query by which the page comes back to itself; with `run`, to that sign-in.
    func query(_ run: SignInRun?) -> String {
        var items = parameters
        if let run { items.append("run", run.id) }
        return FormEncoding.encode(items)
    }
}
