import AssentCore
import HTTPTypes
import Hummingbird

/// What a request says, read so that nobody can read it in two ways.
struct ReceivedRequest {
    /// The URL that is decided on: the service's own origin, and the target without what names a transaction.
    let resource: CanonicalResource

    /// Its method.
    let method: String

    /// Its `Content-Type`.
    let contentType: String?

    /// The values of the fields `Authorization` and `DPoP`, unchecked.
    let authorization: [String]
    let proofs: [String]

    /// The URL that a proof must be made for: the service's own origin, and the target as it was sent.
    let proofURL: String

    /// The transaction that it names.
    let transactionID: String?

    /// The session that it carries; `nil` when there is none.
    let session: Secret?

    /// The value of `Idempotency-Key`; `nil` when there is none.
    let idempotencyKey: String?

    /// The longest session token that is asked about.
    private static let tokenLimit = 4096
    private static let keyLimit = 1024

    /// By which scheme it presents an access token; `nil` where it presents none.
    var tokenScheme: TokenScheme? { TokenCredentials(authorization).scheme }

    /// Reads a request.
    ///
    /// - Throws: ``Refusal`` with status 400, 403 or 414.
    init(_ request: Request, origin: Origin, sessionField: HTTPField.Name) throws(Refusal) {
        // Before any of them is compared with something, and before it is known who sends them.
        guard !request.headers.contains(where: { MarksInARow.areTooMany(in: $0.value) }) else {
            throw Refusal(400, "A header field has too many marks in a row.")
        }
        guard let path = request.head.path, path.utf8.first == UInt8(ascii: "/") else {
            throw Refusal(400, "The request target must be a path.")
        }
        let whole: CanonicalResource
        do {
            whole = try CanonicalResource("\(origin)\(path)")
        } catch {
            throw Refusal(error == .tooLong ? 414 : 400, "The URL \(error).")
        }
        // The router hands it to the handler of the path without the slash, and policies may say less of it.
        guard whole.path == "/" || whole.path.utf8.last != UInt8(ascii: "/") else {
            throw Refusal(400, "The path must not end with a slash.")
        }
        // The vendor's SDKs repeat a request with the ID token: it is not what was approved.
        let (bare, _) = whole.removingParameter(WireName.idTokenParameter)
        let (resource, inQuery) = bare.removingParameter(WireName.transactionParameter)
        let named = inQuery + request.headers[values: .transactionID]
        guard Set(named).count <= 1, inQuery.count <= 1 else {
            throw Refusal(400, "The request names more than one transaction.")
        }
        self.resource = resource
        method = request.method.rawValue
        contentType = request.headers[.contentType]
        authorization = request.headers[values: .authorization]
        proofs = request.headers[values: .dpop]
        proofURL = "\(origin)\(path)"
        transactionID = named.first.flatMap { $0.isEmpty ? nil : $0 }
        if let transactionID, transactionID.utf8.count > 256 {
            throw Refusal(400, "The request names a transaction that there cannot be.")
        }
        let keys = request.headers[values: .idempotencyKey]
        guard keys.count <= 1, keys.allSatisfy({ $0.utf8.count <= Self.keyLimit }) else {
            throw Refusal(400, "The request has more than one Idempotency-Key, or one that is too long.")
        }
        idempotencyKey = keys.first
        // A browser sends no such field for another site's page, unless a preflight has allowed it.
        let tokens = request.headers[values: sessionField]
        guard tokens.count <= 1 else { throw Refusal(400, "The request has more than one session.") }
        session = tokens.first.flatMap { (1...Self.tokenLimit).contains($0.utf8.count) ? Secret($0) : nil }
    }
}
