import AssentCore
import AssentEngine
import AssentSigningProtocol
import Crypto
import Foundation
import HTTPTypes

/// One message to the operator's service, signed as Standard Webhooks 1.0 has it: what it says, and how often it was
/// tried.
struct WebhookMessage: Sendable {
    /// Seconds from an attempt that has failed to the next one. After the last it is given up.
    static let pauses: [TimeInterval] = [5, 30, 120, 300]

    /// The same in each attempt, so that the service knows what it has already. It has no full stop, which would move
    /// the end of what is signed.
    let id: String

    /// What is sent.
    let body: [UInt8]

    /// From when on nobody needs it, in seconds since 1970; `nil` for never.
    let expiresAt: Int64?

    /// How many attempts have failed.
    private(set) var failures = 0

    /// How long it waits after the last one.
    private(set) var pause: WaitingTime?

    init(id: String, body: [UInt8], expiresAt: Int64? = nil) {
        (self.id, self.body, self.expiresAt) = (id, body, expiresAt)
    }

    /// Whether it may be sent at `now`.
    func isDue(at now: Date) -> Bool { pause?.isOver(at: now) ?? true }

    /// Whether nobody needs it any more at `now`.
    func isExpired(at now: Date) -> Bool { expiresAt.map { now.timeIntervalSince1970 >= TimeInterval($0) } ?? false }

    /// The same after one more attempt that has failed; `nil` when there is not to be another one, or it would come too
    /// late.
    func afterFailure(at now: Date) -> WebhookMessage? {
        guard failures < Self.pauses.count else { return nil }
        let pause = WaitingTime(Self.pauses[failures], from: now)
        guard !isExpired(at: pause.end) else { return nil }
        var message = self
        message.failures += 1
        message.pause = pause
        return message
    }

    /// The header fields of an attempt at `now`, in seconds since 1970.
    func fields(signedWith key: Secret, at now: Int64) -> HTTPFields {
        let code = HMAC<SHA256>.authenticationCode(for: Array("\(id).\(now).".utf8) + body, using: key.symmetricKey)
        return [
            .contentType: "application/json", .webhookID: id, .webhookTimestamp: "\(now)",
            .webhookSignature: "v1,\(Data(code).base64EncodedString())",
        ]
    }
}

extension WebhookMessage {
    /// What has happened to a device.
    init(_ news: DeviceNews, id: String) {
        self.init(
            id: id,
            body: Self.body(
                "device.\(news.event.rawValue)", at: news.at,
                [
                    "iss": .string(news.issuer), "user": .string(news.userID), "did": .string(news.did),
                    "name": .string(news.name), "pushId": news.pushID.map(JSONValue.string),
                ]))
    }

    /// That a transaction waits, as it is told at `now`, in seconds since 1970.
    init(_ news: TransactionNews, id: String, at now: Int64) {
        self.init(
            id: id,
            body: Self.body(
                "transaction.waiting", at: now,
                [
                    "iss": .string(news.issuer), "user": .string(news.userID), "txn": .string(news.txn),
                    "did": news.did.map(JSONValue.string), "exp": .integer(news.expiresAt),
                    "pushIds": .array(news.pushIDs.map(JSONValue.string)),
                ]), expiresAt: news.expiresAt)
    }

    private static func body(_ type: String, at time: Int64, _ data: KeyValuePairs<String, JSONValue?>) -> [UInt8] {
        let message: JSONObject = [
            "type": .string(type),
            "timestamp": .string(Date(timeIntervalSince1970: TimeInterval(time)).formatted(.iso8601)),
            "data": .object(JSONObject(omittingNil: data)),
        ]
        return JSONValue.object(message).serializedBytes()
    }
}

extension HTTPField.Name {
    /// A message's id.
    fileprivate static let webhookID = HTTPField.Name("webhook-id")!
    /// When an attempt was made.
    fileprivate static let webhookTimestamp = HTTPField.Name("webhook-timestamp")!
    /// The signature of both and of the content.
    fileprivate static let webhookSignature = HTTPField.Name("webhook-signature")!
}
