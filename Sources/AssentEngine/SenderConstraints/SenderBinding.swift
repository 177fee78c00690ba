import AssentCore
import AssentStore

/// What a session, a code, a grant or a transaction belongs to: only a sender who proves it may use them (RFC 9449 §5,
/// §10).
///
/// The column `sender` has it as the method's name in `cnf` (RFC 7800 §3.1), a colon and the value: `jkt:…`.
package enum SenderBinding: Sendable, Hashable {
    /// A key, by its RFC 7638 thumbprint, which a proof shows (RFC 9449 §6.1).
    case key(thumbprint: String)

    /// Something that this version cannot verify, as it was written. So nobody can prove it.
    case unknown(String)

    private static let keyPrefix = "jkt:"

    /// A key; `nil` without one.
    package init?(keyThumbprint: String?) {
        guard let keyThumbprint else { return nil }
        self = .key(thumbprint: keyThumbprint)
    }

    /// What a column says.
    init(stored: String) {
        // By bytes: each call with a token of a key comes by here, and characters are found slowly.
        let (text, prefix) = (stored.utf8, Self.keyPrefix.utf8)
        self =
            text.starts(with: prefix)
            ? .key(thumbprint: String(decoding: text.dropFirst(prefix.count), as: UTF8.self)) : .unknown(stored)
    }

    /// What the claim `cnf` of a token of ours says. All of its members must be proved (RFC 7800 §3.1).
    init(confirmation: JSONValue) {
        if let members = confirmation.object?.members, members.count == 1, let thumbprint = confirmation["jkt"]?.string
        {
            self = .key(thumbprint: thumbprint)
        } else {
            self = .unknown(confirmation.serialized())
        }
    }

    /// What the column has.
    var stored: String {
        switch self {
        case .key(let thumbprint): Self.keyPrefix + thumbprint
        case .unknown(let text): text
        }
    }

    /// The key's thumbprint; `nil` for anything else.
    package var keyThumbprint: String? {
        if case .key(let thumbprint) = self { thumbprint } else { nil }
    }

    /// Whether someone who has proved the key `proved`, or none, may use what belongs to this.
    func isProved(byKey proved: String?) -> Bool {
        guard let proved, let keyThumbprint else { return false }
        return ConstantTime.equal(keyThumbprint, proved)
    }

    /// Whether someone who has proved the key `proved`, or none, may use what belongs to `bound`. What belongs to
    /// nothing yet takes any key.
    static func allows(_ proved: String?, where bound: SenderBinding?) -> Bool {
        bound.map { $0.isProved(byKey: proved) } ?? true
    }

    /// That `column` is empty, or has something that somebody can prove.
    static func isProvable(_ column: SQL) -> SQL { "(\(column) IS NULL OR substr(\(column), 1, 4) = \(keyPrefix))" }
}

extension SQLRow {
    /// What a row belongs to, by its column `sender` or what a query calls that; `nil` where that is NULL.
    func sender(_ column: String = "sender") throws -> SenderBinding? {
        try optionalText(column).map(SenderBinding.init(stored:))
    }
}
