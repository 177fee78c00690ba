import AssentCore
import AssentSigningProtocol
import AssentTesting
import HTTPTypes

/// The server towards a user who is signed in.
extension ScriptedServer {
    /// Carries the calls of a user who is signed in; `isOwner`: the one whose invite it is.
    nonisolated func userTransport(isOwner: Bool = true) -> InMemoryTransport {
        InMemoryTransport { exchange in try await self.answerUser(exchange, isOwner: isOwner) }
    }

    private func answerUser(_ exchange: InMemoryTransport.Exchange, isOwner: Bool) async throws -> HTTPReply {
        let path = String((exchange.request.path ?? "").dropFirst(issuer.dropFirst("https://am.example".count).count))
        asked.append("\(exchange.request.method) \(path)")
        do {
            if var list = refusals[path], !list.isEmpty {
                let refusal = list.removeFirst()
                refusals[path] = list
                throw refusal
            }
            switch (exchange.request.method, path) {
            case (.post, "/invites"): return .json(201, ["pid": .string(pid.text), "qr": .string(try await invite())])
            case (.post, "/invites/\(pid.text)/digits") where isOwner:
                let digits = try JSONValue.parse(exchange.body)["digits"]?.string
                guard try type(digits) else { throw Refusal(status: 403, code: "digits_wrong") }
                return .json(200, ["state": .string(state.rawValue)])
            case (.delete, "/invites/\(pid.text)") where isOwner:
                if state == .unconfirmed { state = .void }
                return HTTPReply(HTTPResponse(status: .noContent), body: HTTPBody(""))
            default: throw Refusal(status: 404, code: "not_found")
            }
        } catch let refusal as Refusal {
            return .json(refusal.status, ["code": .string(refusal.code), "title": "No"])
        }
    }
}
