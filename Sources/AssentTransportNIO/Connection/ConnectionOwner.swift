import AssentCore
import NIOCore

/// The owner of an open connection, as the connection sees it.
protocol ConnectionOwner: AnyObject, Sendable {
    /// A reply is complete and the connection could serve another request; `false` when it must be closed instead.
    func released(_ connection: UInt64) -> Bool

    /// The call of a connection is to be suspended; `false` when too many are, and it goes on.
    func suspended(_ connection: UInt64) -> Bool

    /// The suspended call of a connection goes on.
    func goesOn(_ connection: UInt64)

    /// The connection is gone.
    func closed(_ connection: UInt64)
}

/// The attempt that opens a connection, as the connection sees it. Only the first answer has an effect.
struct ConnectionOpening: Sendable {
    /// It is open; `false` when nobody waits for it any more.
    let succeed: @Sendable (ConnectionHandle) -> Bool

    /// It will not open.
    let fail: @Sendable (HTTPTransportError) -> Void
}

/// What all connections of a transport have in common.
struct ConnectionSettings: Sendable {
    /// How long a connection without a call is kept.
    let idle: TimeAmount
    /// Whether a connection serves more than one request.
    let keepsConnections: Bool
    /// Whether `http://` may leave this machine.
    let allowsPlaintext: Bool
    /// Which addresses may be connected to; `nil` for all.
    let addressRule: AddressRule?
    let parser: ReplyParser.Limits
}
