import AssentCore
import AssentSigningProtocol
import Foundation
import HTTPTypes
import Hummingbird
import NIOCore

/// `/trust/<name>/<version>`: the versions of trust files, as any static host could serve them. Nobody is asked who they
/// are: only the signature of a file is believed.
struct TrustFileRoute: Sendable {
    let shelf: TrustFileShelf

    /// The path below the public URL's.
    static let path = "/trust"

    /// Whether trust files can be asked for by a name.
    static func isName(_ name: String) -> Bool {
        // Programs that make URLs shorter would take a name of dots away.
        AudiencePart.isValid(name) && !name.allSatisfy { $0 == "." }
    }

    /// Answers a request for a path below the public URL's; `nil` for other paths.
    func respond(to request: Request, path: String) async -> Response? {
        guard path.hasPrefix(Self.path + "/") else { return nil }
        guard request.method == .get || request.method == .head else {
            return .crest(405, "The method is not allowed.", headers: [.allow: "GET"])
        }
        let parts = path.dropFirst(Self.path.count + 1).split(
            separator: "/", maxSplits: 2, omittingEmptySubsequences: false)
        guard parts.count == 2, let number = TrustFileDirectory.number(parts[1]),
            let version = await shelf.version(number, of: String(parts[0]))
        else { return .crest(404, "There is no such version.") }
        let known = request.headers[values: .ifNoneMatch].flatMap { value in
            value.split(separator: ",").map { $0.trimmingCharacters(in: .whitespaces) }
        }
        // A version never changes; but one that was put there by mistake may be taken away again.
        var headers: HTTPFields = [.eTag: version.tag, .cacheControl: "public, max-age=300"]
        let isKnown = known.contains { $0 == "*" || $0 == version.tag || $0 == "W/" + version.tag }
        guard !isKnown else { return Response(status: .notModified, headers: headers) }
        headers[.contentType] = "application/jwt"
        return Response(
            status: .ok, headers: headers, body: ResponseBody(byteBuffer: ByteBuffer(bytes: version.bytes)))
    }
}
