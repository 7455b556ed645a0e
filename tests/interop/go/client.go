// A client as Curio's is one: one lazy connection without TLS, limits of 256 MiB, Prove with a deadline.
//
//	client TARGET FILE REQUEST_ID MINER SECTOR
//
// It prints the job, the status and the proof of Prove, then the queues of GetStatus.
package main

import (
	"context"
	"fmt"
	"io/ioutil"
	"os"
	"strconv"
	"time"

	"google.golang.org/grpc"

	pb "cuzkv1"
)

const maxMessage = 256 << 20

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	input, err := ioutil.ReadFile(os.Args[2])
	if err != nil {
		return err
	}
	miner, _ := strconv.ParseUint(os.Args[4], 10, 64)
	sector, _ := strconv.ParseUint(os.Args[5], 10, 64)
	connection, err := grpc.Dial(os.Args[1], grpc.WithInsecure(),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage), grpc.MaxCallSendMsgSize(maxMessage)))
	if err != nil {
		return err
	}
	defer connection.Close()
	client := pb.NewProvingEngineClient(connection)
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	answer, err := client.Prove(ctx, &pb.ProveRequest{Submit: &pb.SubmitProofRequest{
		RequestId: os.Args[3], ProofKind: pb.ProofKind_POREP_SEAL_COMMIT, SectorSize: 34359738368, RegisteredProof: 8,
		Priority: pb.Priority_NORMAL, VanillaProof: input, SectorNumber: sector, MinerId: miner,
	}})
	if err != nil {
		return err
	}
	result := answer.GetResult()
	fmt.Printf("%s %s %x %s\n", result.JobId, result.Status, result.Proof, result.ErrorMessage)
	status, err := client.GetStatus(ctx, &pb.GetStatusRequest{})
	if err != nil {
		return err
	}
	for _, queue := range status.Queues {
		fmt.Printf("%s %d %d\n", queue.ProofKind, queue.Pending, queue.InProgress)
	}
	return nil
}
