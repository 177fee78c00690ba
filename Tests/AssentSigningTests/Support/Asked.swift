import AssentCore
import AssentSigning

/// A user who is asked for passwords, and what was asked: for each whether it was a new one.
final class Asked: Sendable {
    private let asked = Locked<[Bool]>([])
    private let current: Secret
    private let new: Secret

    /// A user who types one for the current password, and another one for a new one.
    init(_ current: Secret, new: Secret? = nil) { (self.current, self.new) = (current, new ?? current) }

    var log: [Bool] { asked.withLock { $0 } }

    var prompt: SigningPasswordPrompt {
        { request in
            self.asked.withLock { $0.append(request.isNew) }
            return request.isNew ? self.new : self.current
        }
    }
}
