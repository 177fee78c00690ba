import AssentCore
import AssentPayload
import Foundation

extension ServerSession {
    /// What a listener for `origin` does with a message, which comes in pieces, in arrays or not, when this session
    /// answers it.
    mutating func actions(
        _ message: [UInt8], for origin: Origin, piece: Int = .max, isCut: Bool = false, isInPlace: Bool = false,
        at time: Date
    ) -> [ServerMessage.Action] {
        var reader = ServerMessage(origin: origin)
        var session = self
        var actions: [ServerMessage.Action] = []
        func take(_ event: ServerMessage.Event) { follow(reader.take(event)) }
        func follow(_ found: [ServerMessage.Action]) {
            for action in found {
                actions.append(action)
                do throws(PayloadRefusal) {
                    switch action {
                    case .lookUp(let head): take(.opener(try session.opener(head, at: time)))
                    case .claim(let number):
                        try session.claim(number, at: time)
                        take(.claimed)
                    default: break
                    }
                } catch {
                    take(.refused(error))
                }
            }
        }
        var rest = message[...]
        while !rest.isEmpty {
            if isInPlace {
                follow(rest.prefix(piece).withUnsafeBytes { reader.take(bytes: $0) })
            } else {
                take(.bytes(Array(rest.prefix(piece))))
            }
            rest = rest.dropFirst(piece)
        }
        if !isCut { take(.end) }
        self = session
        return actions
    }
}
