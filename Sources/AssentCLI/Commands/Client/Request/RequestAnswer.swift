import Assent
import HTTPTypes

/// What came back to `assent request`.
struct RequestAnswer {
    let status: Int
    let fields: HTTPFields
    let body: [UInt8]
    /// Where the content is, if it was downloaded.
    let file: String?
    /// Whether the user was asked for it.
    let authorization: ReplyAuthorization

    init(_ response: ResourceResponse) {
        (status, fields, body) = (response.status, response.headerFields, response.data)
        (file, authorization) = (response.file, response.authorization)
    }

    init(_ reply: HTTPReply) async throws {
        (status, fields) = (reply.status, reply.response.headerFields)
        body = try await reply.body.collect(upTo: 64 << 20)
        file = nil
        authorization = reply.authorization
    }

    /// Whether the gateway says that its route is for calls of other kinds.
    var refusesKind: Bool {
        guard status == 403, let body = try? JSONValue.parse(body) else { return false }
        return body["code"] == "token_kind"
    }

    func show(on console: Console) {
        console.say("HTTP \(status)")
        for field in fields where field.name != .setCookie {
            console.say("\(field.name): \(DisplayText.escapedForTerminal(field.value))")
        }
    }
}
