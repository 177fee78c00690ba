import AssentCore
import AssentJourney
import Foundation
import HTTPTypes

/// What our server says in a transaction's step about the request that is being approved.
struct TransactionStatement {
    static let typeName = "AssentTransaction"
    private static let fieldLimit = 50

    let transactionID: String
    let display: [DisplayField]
    let expiresAt: Date?
    private let data: JSONObject

    /// Reads the statement of a step; `nil` when there is none.
    ///
    /// - Throws: ``AuthorizationError`` with code `approvalForAnotherRequest` when there are two, or one that cannot be
    ///   read or shown.
    init?(_ step: JourneyStep) throws(AuthorizationError) {
        let found = step.callbacks.compactMap { ($0 as? MetadataCallback)?.data }
            .filter { $0["_type"]?.string == Self.typeName }
        guard let data = found.first else { return nil }
        guard found.count == 1, data.duplicateNames.isEmpty else { throw Self.unreadable("there are two of it") }
        guard let id = data["transactionId"]?.string else { throw Self.unreadable("it names no transaction") }
        for name in ["method", "resource", "contentType", "bodySHA256"] {
            if let value = data[name], value.string == nil { throw Self.unreadable("\(name) is not a string") }
        }
        self.data = data
        transactionID = id
        expiresAt = data["expiresAt"]?.integer.map { Date(timeIntervalSince1970: Double($0)) }
        var display: [DisplayField] = []
        let lines = data["display"]?.array ?? []
        guard lines.count <= Self.fieldLimit else { throw Self.unreadable("it has too many lines") }
        for line in lines {
            guard let label = line["label"]?.string, let value = line["value"]?.string else {
                throw Self.unreadable("a line has no label or no value")
            }
            do throws(DisplayTextError) {
                display.append(DisplayField(label: try DisplayText(label).text, value: try DisplayText(value).text))
            } catch {
                throw Self.unreadable("a line cannot be shown as it stands")
            }
        }
        self.display = display
    }

    /// Compares with the request that will be repeated.
    ///
    /// - Returns: the parts that the statement names, all of them equal.
    /// - Throws: ``AuthorizationError`` with code `approvalForAnotherRequest`, naming the part.
    func compare(with request: RepeatableRequest, transactionID: String) throws(AuthorizationError) -> Set<
        ApprovalBinding.Part
    > {
        guard ConstantTime.equal(self.transactionID, transactionID) else { throw Self.other("transaction") }
        var parts: Set<ApprovalBinding.Part> = []
        if let method = data["method"]?.string {
            guard method == request.method else { throw Self.other("method") }
            parts.insert(.method)
        }
        if let resource = data["resource"]?.string {
            guard let stated = ComparableURL(resource), let own = ComparableURL(request.url) else {
                throw Self.other("URL")
            }
            guard stated.origin == own.origin, stated.path == own.path else { throw Self.other("URL") }
            parts.insert(.resource)
            if let query = stated.query {
                guard query == own.query else { throw Self.other("query") }
                parts.insert(.query)
            } else if own.query == nil {
                parts.insert(.query)
            }
        }
        if let type = data["contentType"]?.string {
            guard MediaType.normalised(type) == MediaType.normalised(request.contentType ?? "") else {
                throw Self.other("media type")
            }
            parts.insert(.contentType)
        }
        if let digest = data["bodySHA256"]?.string {
            guard ConstantTime.equal(digest, request.bodySHA256) else { throw Self.other("body") }
            parts.insert(.body)
        }
        return parts
    }

    private static func other(_ part: String) -> AuthorizationError {
        AuthorizationError(
            .approvalForAnotherRequest, "The server asks to approve another request: its \(part) is not this one's.")
    }

    private static func unreadable(_ what: String) -> AuthorizationError {
        AuthorizationError(
            .approvalForAnotherRequest, "The server's description of the request to approve cannot be used: \(what).")
    }
}

/// The request as it will be sent again, as far as an approval can be for it.
struct RepeatableRequest {
    let method: String
    let url: String
    let contentType: String?
    let bodySHA256: String
    private let needed: Set<ApprovalBinding.Part>

    /// The largest body that is read again to be compared.
    private static let bodyLimit = 64 << 20

    init(_ call: HTTPCall) async throws {
        method = call.request.method.rawValue
        url = call.request.url ?? ""
        contentType = call.request.headerFields[.contentType]
        let body = try await call.body?.collect(upTo: Self.bodyLimit) ?? []
        bodySHA256 = Base64URL.encode(SHA2.sha256(body))
        needed = body.isEmpty ? [.method, .resource, .query] : [.method, .resource, .query, .body]
    }

    /// A resource about which the server is asked without a method and without content.
    init(resource url: String) {
        method = ""
        self.url = url
        contentType = nil
        bodySHA256 = ""
        needed = [.resource, .query]
    }

    /// The approved call with content in memory, when it is still what was compared. A file that a replayable stream
    /// reads may have been written meanwhile.
    ///
    /// - Throws: ``AuthorizationError`` with code `approvalForAnotherRequest`: nothing was sent; what reading throws.
    func unchanged(_ approved: HTTPCall) async throws -> HTTPCall {
        guard let body = approved.body, body.inMemory == nil else { return approved }
        let bytes = try await body.collect(upTo: Self.bodyLimit)
        guard ConstantTime.equal(Base64URL.encode(SHA2.sha256(bytes)), bodySHA256) else {
            throw AuthorizationError(
                .approvalForAnotherRequest, "The request's content has changed since it was approved. It was not sent.",
                suggestion: "Send the request again; it needs a new approval.")
        }
        var call = approved
        call.body = HTTPBody(bytes)
        return call
    }

    /// Throws with code `approvalNotBound` unless `parts` are all that make this request what it is.
    func requireBinding(_ parts: Set<ApprovalBinding.Part>) throws(AuthorizationError) {
        guard parts.isSuperset(of: needed) else {
            throw AuthorizationError(.approvalNotBound, "The server does not say that all of the request is approved.")
        }
    }
}

/// A URL in a form in which two that every server reads alike are equal: escapes in upper case and only where they are
/// needed, slashes single (RFC 3986 §6.2.2). Nothing that could change the meaning is undone.
struct ComparableURL: Equatable {
    let origin: Origin
    let path: String
    let query: String?

    init?(_ url: String) {
        guard let origin = try? Origin(url), let request = try? HTTPRequest(.get, url: url),
            let target = request.path.flatMap({ try? RequestTarget($0) })
        else { return nil }
        self.origin = origin
        path = Self.path(of: target)
        query = target.query.map { String(decoding: Self.normalised($0.text), as: UTF8.self) }
    }

    /// The path of a request in that form.
    static func path(of target: RequestTarget) -> String {
        var path: [UInt8] = []
        for byte in normalised(target.path) where !(byte == UInt8(ascii: "/") && path.last == byte) {
            path.append(byte)
        }
        return String(decoding: path, as: UTF8.self)
    }

    /// The path of a request's target in that form; `nil` for one that cannot be read.
    static func path(ofTarget text: String) -> String? {
        plainPath(text) ?? (try? RequestTarget(text)).map { path(of: $0) }
    }

    /// The path of a target that has it in that form already, as nearly all calls do; `nil` for any other.
    private static func plainPath(_ text: String) -> String? {
        guard text.utf8.count <= plainLimit, text.utf8.first == UInt8(ascii: "/") else { return nil }
        let mark = text.utf8.firstIndex(of: UInt8(ascii: "?"))
        var last: UInt8?
        for byte in text.utf8[..<(mark ?? text.endIndex)] {
            guard isKept(byte), byte != UInt8(ascii: "/") || last != byte else { return nil }
            last = byte
        }
        guard let mark else { return text }
        guard text.utf8[mark...].allSatisfy({ $0.isASCIIVisible && $0 != UInt8(ascii: "#") }) else { return nil }
        return String(text[..<mark])
    }

    /// The most bytes of a target that is looked at in this way: fewer than may be read at all.
    private static let plainLimit = 1024

    /// Whether a byte stands in that form as it is: unreserved, or with a meaning of its own.
    private static func isKept(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "!"), UInt8(ascii: "$"), UInt8(ascii: "&")...UInt8(ascii: ","), UInt8(ascii: ";"),
            UInt8(ascii: "="), UInt8(ascii: ":"), UInt8(ascii: "@"), UInt8(ascii: "/"), UInt8(ascii: "?"):
            true
        default: byte.isURIUnreserved
        }
    }

    private static func normalised(_ text: String) -> [UInt8] {
        var result: [UInt8] = []
        let bytes = Array(text.utf8)
        result.reserveCapacity(bytes.count)
        var index = 0
        while index < bytes.count {
            let byte = bytes[index]
            if byte == UInt8(ascii: "%"), bytes.count - index > 2,
                let decoded = Hex.decode(String(decoding: bytes[(index + 1)...(index + 2)], as: UTF8.self))?.first
            {
                append(decoded, to: &result)
                index += 3
                continue
            }
            if isKept(byte) { result.append(byte) } else { append(byte, to: &result) }
            index += 1
        }
        return result
    }

    /// Adds `byte` itself when it is unreserved, else its escape.
    private static func append(_ byte: UInt8, to bytes: inout [UInt8]) {
        if byte.isURIUnreserved {
            bytes.append(byte)
        } else {
            bytes += Array("%\(Hex.encode([byte]).uppercased())".utf8)
        }
    }
}
