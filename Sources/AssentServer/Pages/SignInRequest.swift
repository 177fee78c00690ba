import AssentCore
import AssentEngine
import HTTPTypes
import Hummingbird

/// What the query of the sign-in page asks for (am-server reference: `realm`, `goto`, `service`, `authIndexType`, …).
struct SignInRequest {
    /// The parameters that count, in the order in which links are written.
    private static let names = ["realm", "goto", "service", "authIndexType", "authIndexValue", "ForceAuth", "prompt"]

    /// The realm, for example `/alpha`.
    let realm: String

    /// `authIndexType`, and `service` for a journey that `service` names.
    let authIndexType: String?

    /// `authIndexValue`.
    let authIndexValue: String?

    let forceAuth: Bool

    /// Whether somebody is to sign in instead of the user whose session there is (`prompt=login`, OpenID Connect Core §3.1.2.1).
    let replacesSession: Bool

    /// `goto`, unchecked.
    let goto: String?

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
        forceAuth = values["ForceAuth"]?.lowercased() == "true"
        replacesSession = values["prompt"]?.split(separator: " ").contains("login") ?? false
        authIndexType = values["authIndexType"] ?? values["service"].map { _ in "service" }
        authIndexValue = values["authIndexType"] == nil ? values["service"] : values["authIndexValue"]
    }

    /// Whether it asks for the approval of a transaction, which begins at most once: looking at the page must not begin it.
    var isTransaction: Bool {
        switch authIndexType?.lowercased() {
        case "transaction": return true
        case "composite_advice":
            guard let advice = try? CompositeAdvice.parse(authIndexValue ?? ""), case .transaction = advice.kind else {
                return false
            }
            return true
        default: return false
        }
    }

    /// The query by which the page comes back to itself.
    var query: String { FormEncoding.encode(parameters) }
}

/// A step that the page's form posted.
struct SignInForm {
    private static let limit = 64 << 10

    /// The pointer to the step; `nil` when the journey is to begin.
    let authID: String?

    /// What the page showed, to tell whether the next one shows the same.
    let shown: String?

    /// Whether the user wants to go back without answering.
    let isCancelled: Bool

    private let types: [String]
    private let form: FormItems

    /// Reads the form.
    ///
    /// - Throws: ``RequestError`` 400, 413, 415.
    init(_ request: Request) async throws {
        let type = request.headers[.contentType]?.prefix { $0 != ";" }.lowercased() ?? ""
        guard type == FormEncoding.mediaType else {
            throw RequestError(415, "The media type must be \(FormEncoding.mediaType).")
        }
        let bytes = try await request.bytes(upTo: Self.limit)
        do {
            form = try FormEncoding.parse(bytes, limits: .init(bytes: Self.limit, items: 64))
            authID = try form.single("authId")
            shown = try form.single("shown")
            isCancelled = try form.single("cancel") != nil
            types = try (form.single("types") ?? "").split(separator: " ").map(String.init)
        } catch {
            throw RequestError(400, "The form cannot be read.")
        }
        guard types.count <= 32, form.duplicateNames.isEmpty else {
            throw RequestError(400, "The form cannot be read.")
        }
    }

    /// The step as the authenticate endpoint takes it. What each callback must be, the engine knows itself.
    var body: JSONObject {
        var object = JSONObject()
        object["authId"] = authID.map(JSONValue.string)
        object["callbacks"] = .array(
            types.enumerated().map { index, type in
                var callback = JSONObject([.init(name: "type", value: .string(type))])
                if let value = form["IDToken\(index + 1)"] {
                    callback["input"] = [["name": .string("IDToken\(index + 1)"), "value": .string(value)]]
                }
                return .object(callback)
            })
        return object
    }
}
