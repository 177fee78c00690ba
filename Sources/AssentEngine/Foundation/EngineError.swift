package import AssentCore
package import AssentStore

/// Why the engine did not do what it was asked, in the wire's terms. Routes turn it into the form that their endpoint speaks.
package struct EngineError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The HTTP status.
    package let status: Int

    /// The text for the client, as AM words it where AM has words.
    package let message: String

    /// AM's `detail.errorCode`, for example `110`.
    package let errorCode: String?

    /// AM's `detail.failureUrl`: empty after a journey that has failed.
    package let failureURL: String?

    /// An error.
    package init(status: Int, _ message: String, errorCode: String? = nil, failureURL: String? = nil) {
        self.status = status
        self.message = message
        self.errorCode = errorCode
        self.failureURL = failureURL
    }

    /// AM's `detail`, or `nil` when there is none.
    package var detail: JSONObject? {
        var detail = JSONObject()
        detail["errorCode"] = errorCode.map(JSONValue.string)
        detail["failureUrl"] = failureURL.map(JSONValue.string)
        return detail.members.isEmpty ? nil : detail
    }

    /// Status and message.
    package var description: String { "\(status) \(message)" }

    /// The database cannot serve: nothing was changed, and the same request may succeed later.
    package static let unavailable = EngineError(status: 503, "The server cannot reach its database. Try again later.")

    /// What a client is told when the store has failed: only of one that cannot be reached that it is worth another try.
    package init(_ error: StoreError) {
        switch error.code {
        case .unavailable: self = .unavailable
        case .statement: self.init(status: 500, "The server failed. Its log says why.")
        default: self.init(status: 500, "The server's database is damaged.")
        }
    }
}
