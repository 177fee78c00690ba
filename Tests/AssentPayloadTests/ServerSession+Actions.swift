import AssentCore
import AssentPayload
import Foundation

extension ServerSession {
    /// What a listener for `origin` does with a message, which comes in pieces, when this session answers it.
    mutating func actions(
        _ message: [UInt8], for origin: Origin, piece: Int = .max, isCut: Bool = false, at time: Date
    ) -> [ServerMessage.Action] {
        var reader = ServerMessage(origin: origin)
        var session = self
        var actions: [ServerMessage.Action] = []
        func take(_ event: ServerMessage.Event) {
            for action in reader.take(event) {
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
            take(.bytes(Array(rest.prefix(piece))))
            rest = rest.dropFirst(piece)
        }
        if !isCut { take(.end) }
        self = session
        return actions
    }
}
