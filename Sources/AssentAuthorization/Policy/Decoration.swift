import AssentCore
import HTTPTypes

extension AuthorizationPolicy {
    /// Fields that say what the content is or whose call it is, and that may not be added; the approval is for these as
    /// well. A field that the call has stays as it is, whatever its name.
    private static let kept = [
        "content-type", "content-encoding", "content-length", "transfer-encoding", "host", "idempotency-key",
    ]

    /// The approved call with the transaction's id as ``decorate`` puts it there. The content is always the call's.
    ///
    /// - Throws: ``AuthorizationError`` with code `invalidConfiguration` when it changed more than it may, and what it
    ///   throws.
    func decorated(
        _ call: HTTPCall, _ transactionID: String, by decorate: (inout HTTPCall, String) throws -> Void
    ) throws -> HTTPCall {
        var changed = call
        try decorate(&changed, transactionID)
        let (before, after) = (call.request, changed.request)
        guard after.method == before.method, after.scheme == before.scheme, after.authority == before.authority,
            Self.extends(after.path ?? "", before.path ?? "")
        else { throw Self.changed("the method or the address") }
        guard Self.isSame(changed.body, call.body) else { throw Self.changed("the content") }
        for name in before.headerFields.map(\.name) + Self.kept.compactMap({ HTTPField.Name($0) })
        where after.headerFields[values: name] != before.headerFields[values: name] {
            throw Self.changed("the field \(name.rawName)")
        }
        var result = call
        result.request.path = after.path
        result.request.headerFields = after.headerFields
        return result
    }

    /// Whether a path is another one with items behind its query. The approval is for the query that was compared.
    private static func extends(_ path: String, _ original: String) -> Bool {
        guard path != original else { return true }
        let separator = original.utf8.contains(UInt8(ascii: "?")) ? "&" : "?"
        return path.utf8.starts(with: "\(original)\(separator)".utf8)
    }

    private static func isSame(_ one: HTTPBody?, _ other: HTTPBody?) -> Bool {
        one?.inMemory == other?.inMemory && one?.length == other?.length && one?.isReplayable == other?.isReplayable
    }

    private static func changed(_ what: String) -> AuthorizationError {
        AuthorizationError(
            .invalidConfiguration, "The policy's decorate changed \(what) of the approved call. Nothing was approved.",
            suggestion: "Add header fields, and items behind the query.")
    }
}
