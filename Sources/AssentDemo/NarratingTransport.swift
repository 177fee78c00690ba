import AssentCore
import HTTPTypes

/// Tells what somebody sends and what comes back: method, path, status, and of the header fields those that the story
/// is about. Never a body, a token, or a query's value.
struct NarratingTransport: HTTPTransport {
    let transport: any HTTPTransport
    let narration: Narration

    /// Which party answers at an origin's port.
    let parties: [Int: Narration.Party]

    /// Who sends.
    var sender = Narration.Party.app

    @concurrent func send(_ call: HTTPCall) async throws -> HTTPReply {
        let party = (try? Origin(call.request)).flatMap { parties[$0.port] } ?? .server
        narration.tell(.message(from: sender, to: party, text: Self.request(call.request), refused: false))
        do {
            let reply = try await transport.send(call)
            narration.tell(
                .message(from: party, to: sender, text: Self.reply(reply.response), refused: reply.status >= 300))
            return reply
        } catch let error as HTTPTransportError {
            narration.tell(.message(from: party, to: sender, text: "no reply: \(error.code)", refused: true))
            throw error
        }
    }

    private static func request(_ request: HTTPRequest) -> String {
        let path = request.path ?? "/"
        let parts = path.prefix { $0 != "?" }.split(separator: "/")
        // The realm is the same in every line: the last two segments tell what is called.
        let place =
            parts.contains("realms")
            ? "…/" + parts.suffix(parts.last == "authenticate" ? 1 : 2).joined(separator: "/")
            : "/" + parts.joined(separator: "/")
        var text = "\(request.method) \(place)"
        let names = URLText.query(of: path)?.items.compactMap(\.name) ?? []
        if !names.isEmpty { text += "?" + names.prefix(2).map { "\($0)=…" }.joined(separator: "&") }
        if names.count > 2 { text += "&…" }
        var fields: [String] = []
        if request.headerFields.contains(.authorization) { fields.append("access token") }
        if request.headerFields.contains(where: { $0.name.canonicalName == "iplanetdirectorypro" }) {
            fields.append("session")
        }
        if request.headerFields.contains(.dpop) { fields.append("proof") }
        return fields.isEmpty ? text : text + " (with \(fields.joined(separator: ", ")))"
    }

    private static func reply(_ response: HTTPResponse) -> String {
        var text = "\(response.status.code)"
        if let challenge = response.headerFields[.wwwAuthenticate] {
            text += " WWW-Authenticate: \(challenge.prefix { $0 != " " }) …"
        }
        if let location = response.headerFields[.location] {
            text += " Location: \(location.prefix { $0 != "?" })?…"
        }
        return text
    }
}
