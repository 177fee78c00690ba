import Dispatch

/// Runs an actor's work on a queue of its own, so that waiting for a disk (or for scrypt) holds up no cooperative thread.
final class FileThread: SerialExecutor {
    private let queue = DispatchQueue(label: "assent.vault")

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        queue.async { job.runSynchronously(on: self.asUnownedSerialExecutor()) }
    }
}
