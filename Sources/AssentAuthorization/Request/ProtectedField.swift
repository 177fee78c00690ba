import AssentCore
package import HTTPTypes

/// A header field that is not the app's to give in a ``ResourceRequest``, with what becomes of it in an `HTTPCall`,
/// which an app's own client sends through ``/AssentTokens/AuthenticatingTransport``.
package struct ProtectedField: Sendable {
    /// What becomes of the field in an `HTTPCall`.
    package enum InCall: Sendable {
        /// It goes out as the app gave it, in the place of the user's token.
        case replacesCredential
        /// It goes out beside an `Authorization` of the app's own, and is refused without one.
        case besideOwnCredential
        /// The session takes its place where the resource gets the session.
        case replacedBySession
        /// The layers below get it as it was given. The connection decides what it means.
        case asGiven
    }

    /// The name in lower case; that of a whole family ends in `-`.
    package let name: String

    /// What becomes of it in an `HTTPCall`.
    package let inCall: InCall

    private init(_ name: String, _ inCall: InCall = .asGiven) {
        self.name = name
        self.inCall = inCall
    }

    /// All fields but the session's, whose name is configured, and `Content-Type`, which a form with files writes.
    package static let table: [ProtectedField] = [
        ProtectedField("authorization", .replacesCredential), ProtectedField("dpop", .besideOwnCredential),
        ProtectedField("user-agent"), ProtectedField("host"), ProtectedField("cookie2"),
        ProtectedField("content-length"), ProtectedField("transfer-encoding"), ProtectedField("connection"),
        ProtectedField("keep-alive"), ProtectedField("te"), ProtectedField("trailer"), ProtectedField("upgrade"),
        ProtectedField("expect"), ProtectedField("proxy-"), ProtectedField("x-txid"),
    ]

    private static let names = Set(table.filter { !$0.isFamily }.map(\.name))
    private static let families = table.filter(\.isFamily)

    /// Whether a row of ``table`` covers a field.
    package static func isInTable(_ field: HTTPField.Name) -> Bool {
        names.contains(field.canonicalName) || families.contains { $0.covers(field) }
    }

    /// The field that carries a session, by its configured name.
    package static func session(_ name: String) -> ProtectedField {
        ProtectedField(name.asciiLowercased, .replacedBySession)
    }

    /// Whether a field carries a session, by the configured name of such fields. Mostly the lengths differ, and the
    /// name need not be brought into lower case.
    static func isSession(_ field: HTTPField.Name, named name: String) -> Bool {
        guard field.canonicalName.utf8.count == name.utf8.count || name.utf8.last == UInt8(ascii: "-") else {
            return false
        }
        return session(name).covers(field)
    }

    private var isFamily: Bool { name.utf8.last == UInt8(ascii: "-") }

    /// Whether this is a row of `field`.
    package func covers(_ field: HTTPField.Name) -> Bool {
        // It is in lower case.
        let given = field.canonicalName
        return isFamily ? given.utf8.starts(with: name.utf8) : given == name
    }
}
