/// How far a call is. A part that is sent or read anew counts from its start again.
public struct NetworkProgress: Sendable, Hashable {
    /// Bytes of the request's content that were handed to the network.
    public internal(set) var sentBytes = 0

    /// All bytes of the request's content; `nil` when nobody knows.
    public internal(set) var bytesToSend: Int?

    /// Bytes of the reply's content that have come.
    public internal(set) var receivedBytes = 0

    /// All bytes of the reply's content; `nil` when the server has not said.
    public internal(set) var bytesToReceive: Int?
}
