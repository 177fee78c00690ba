public import HTTPTypes

/// An advice as a resource sent it, with what is needed to decide whether to believe it.
///
/// A resource that was broken into could send its users through any journey: before acting, compare ``serverOrigin``
/// with the configured server.
public struct ReceivedAdvice: Hashable, Sendable {
    /// The form it came in.
    public enum Form: String, Hashable, Sendable {
        /// 401 with `WWW-Authenticate: SSOADVICE …`.
        case header
        /// 307 to AM's login page.
        case redirect
        /// The body of a policy decision.
        case json
    }

    /// What is wanted.
    public let advice: Advice

    /// The form it came in.
    public let form: Form

    /// The AM server that the sender names, without query: `am_uri`, or where the redirect leads. `nil` where the form
    /// names none.
    public let server: String?

    /// The origin of ``server``; `nil` where the form names none.
    public let serverOrigin: Origin?

    /// The realm that the sender names, if any.
    public let realm: String?

    /// Where a browser would go after signing in (`goto` of a redirect), if it can be decoded.
    public let goto: String?

    init(
        _ advice: Advice, form: Form, server: String? = nil, serverOrigin: Origin? = nil, realm: String? = nil,
        goto: String? = nil
    ) {
        self.advice = advice
        self.form = form
        self.server = server
        self.serverOrigin = serverOrigin
        self.realm = realm
        self.goto = goto
    }

    /// The scheme of the challenge that carries an advice.
    public static let challengeScheme = "SSOADVICE"

    /// Reads the advice of a reply's header, as status 401 or 307 carry it.
    ///
    /// - Returns: `nil` when the reply has none: another status, no such challenge, a redirect to somewhere else.
    /// - Throws: ``WireError`` when there is one that cannot be read; then hand the reply to the caller as it is.
    public init?(_ response: HTTPResponse) throws(WireError) {
        switch response.status.code {
        case 401: try self.init(challenges: response.headerFields[values: .wwwAuthenticate])
        case 307:
            let locations = response.headerFields[values: .location]
            guard locations.count <= 1 else { throw WireError(.duplicate, "several Location fields") }
            guard let location = locations.first else { return nil }
            try self.init(location: location)
        default: return nil
        }
    }

    /// Reads the advice of the `WWW-Authenticate` fields of a reply with status 401.
    ///
    /// - Returns: `nil` when no `SSOADVICE` challenge carries `advices`.
    /// - Throws: ``WireError`` when one cannot be read, there are several, or `am_uri` is not a URL.
    public init?(challenges fieldValues: [String]) throws(WireError) {
        var found: [Challenge] = []
        for fieldValue in fieldValues {
            do throws(WireError) {
                found += try Challenge.parse(fieldValue).filter {
                    $0.isScheme(Self.challengeScheme) && $0["advices"] != nil
                }
            } catch {
                let isOurs = fieldValue.prefix(Challenge.byteLimit).asciiLowercased.contains("ssoadvice")
                if isOurs { throw error }
            }
        }
        guard found.count <= 1 else { throw WireError(.duplicate, "several challenges carry an advice") }
        guard let challenge = found.first, let encoded = challenge["advices"] else { return nil }
        guard let bytes = Self.base64(encoded) else { throw WireError(.malformed, "advices are not base 64") }
        let json: JSONValue
        do throws(JSONError) {
            json = try JSONValue.parse(bytes, limits: Self.jsonLimits)
        } catch { throw WireError(.malformed, "The advice is not JSON. \(error.detail)") }
        let server = challenge["am_uri"]
        var origin: Origin?
        if let server { origin = try Origin(server) }
        self.init(
            try Advice(json: json), form: .header, server: server.map(URLText.withoutQuery), serverOrigin: origin,
            realm: challenge["realm"])
    }

    /// Reads the advice of the `Location` of a reply with status 307.
    ///
    /// - Returns: `nil` when it does not carry a composite advice, so is a redirect like any other.
    /// - Throws: ``WireError`` when it does but cannot be read, or is not an absolute URL.
    public init?(location: String) throws(WireError) {
        guard location.utf8.count <= Self.locationByteLimit else {
            throw WireError(.tooLarge, "a Location field has more than \(Self.locationByteLimit) bytes")
        }
        guard let query = URLText.query(of: location),
            try query.single("authIndexType") == "composite_advice",
            let value = try query.single("authIndexValue")
        else { return nil }
        let server = URLText.withoutQuery(location)
        let origin = try Origin(server)
        let goto = query[all: "goto"]
        self.init(
            try CompositeAdvice.parse(value), form: .redirect, server: server, serverOrigin: origin,
            realm: try query.single("realm"), goto: goto.count == 1 ? goto[0] : nil)
    }

    /// Reads the advice of a body that is AM's policy decision: an object, an array whose first element counts, or the
    /// bare map of names to values.
    ///
    /// - Returns: `nil` unless every part has the shape of a decision and AM is known to send at least one of the
    ///   names, so that a body which merely has a member called `advices` is left alone. Which statuses may carry one
    ///   is for the caller to decide.
    public init?(decision json: JSONValue) {
        guard let object = (json.array.map { $0.first } ?? json)?.object else { return nil }
        let advices: JSONValue
        if let member = object["advices"] {
            let isMap = { (name: String) in object[name].map { $0.object != nil || $0.array == [] } ?? true }
            guard object.duplicateNames.isEmpty, isMap("actions"), isMap("attributes"),
                object["resource"].map({ $0.string != nil }) ?? true, object["ttl"].map({ $0.number != nil }) ?? true
            else { return nil }
            advices = member
        } else {
            advices = .object(object)
        }
        guard let advice = try? Advice(json: advices), advice.entries.contains(where: \.name.isKnown) else {
            return nil
        }
        self.init(advice, form: .json)
    }

    /// Reads the advice of a body that is AM's policy decision. See ``init(decision:)-(JSONValue)``.
    public init?(decision body: [UInt8]) {
        guard let json = try? JSONValue.parse(body, limits: JSONLimits(depth: 16, values: 1000)) else { return nil }
        self.init(decision: json)
    }

    /// Whether a reply with this status can have an advice, in its header or, where the resource may send decisions, in
    /// its body.
    package static func isPossible(_ status: Int, acceptsDecisions: Bool) -> Bool {
        switch status {
        case 401, 307: true
        case 200, 403: acceptsDecisions
        default: false
        }
    }

    /// Finds the advice of a reply, in its header or, where the resource may send decisions, in its body.
    ///
    /// - Parameters:
    ///   - reply: its body may be read for this, and is then in memory if it is short enough for a decision. One that
    ///     is longer is still read as it comes.
    ///   - acceptsDecisions: whether a body with status 200, 401 or 403 that is AM's policy decision is an advice.
    ///   - limit: how many bytes of the body are read at most.
    /// - Returns: `nil` when there is none.
    /// - Throws: ``WireError`` when there is one in the header that cannot be read, and what reading the body throws.
    package static func find(
        in reply: inout HTTPReply, acceptsDecisions: Bool, limit: Int
    ) async throws -> ReceivedAdvice? {
        if let received = try ReceivedAdvice(reply.response) { return received }
        guard acceptsDecisions, [200, 401, 403].contains(reply.status),
            let type = reply.response.headerFields[.contentType]?.lowercased(),
            type == "application/json" || type.hasPrefix("application/json;")
        else { return nil }
        guard let bytes = try await reply.body.peek(upTo: min(limit, decisionByteLimit)) else { return nil }
        return ReceivedAdvice(decision: bytes)
    }

    /// Longer content is not a decision, and may be more than memory holds.
    private static let decisionByteLimit = 1 << 20

    private static let locationByteLimit = 64 << 10

    private static let jsonLimits = JSONLimits(bytes: Challenge.byteLimit, depth: 4, values: 1000)

    /// Base 64 in either alphabet, padded or not.
    private static func base64(_ text: String) -> [UInt8]? {
        let urlSafe = CompositeAdvice.withoutPadding(text).utf8.map { byte in
            switch byte {
            case UInt8(ascii: "+"): UInt8(ascii: "-")
            case UInt8(ascii: "/"): UInt8(ascii: "_")
            default: byte
            }
        }
        return Base64URL.decode(String(decoding: urlSafe, as: UTF8.self))
    }
}
