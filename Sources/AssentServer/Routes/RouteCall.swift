import AssentCore
import AssentEngine
import Hummingbird

/// A request as its route gets it: held to the route's row, its realm and its caller found.
struct RouteCall: Sendable {
    /// The request.
    let request: Request

    /// The row.
    let rule: RouteRule

    /// The realm.
    let realm: String

    /// Who sends it, as far as the row asks for it.
    let caller: Caller

    /// Where it comes from.
    let client: ClientAddress

    /// The caller's session, for rows that ask for one.
    ///
    /// - Throws: ``EngineError`` `sessionRequired`.
    var session: LiveSession {
        get throws(EngineError) {
            guard let session = caller.session else { throw .sessionRequired }
            return session
        }
    }

    /// The body, which is at most as large as the row says.
    ///
    /// - Throws: ``RequestError`` 413, 400.
    func body() async throws -> [UInt8] { try await request.bytes(upTo: rule.bodyLimit) }

    /// The body as a JSON object; an empty one is an empty object.
    ///
    /// - Throws: ``RequestError`` 413, 415, 400.
    func jsonObject() async throws -> JSONObject { try await request.jsonObject(upTo: rule.bodyLimit) }

    /// The action that the query names.
    func action() throws -> String? { try request.query("_action") }
}
